// SPDX-License-Identifier: BSD-3-Clause
// The network transport over ports of RDMA devices.
#pragma once

#include "npushmem/plugin/host.hpp"
#include "transports/network/multi_rail_wire.hpp"
#include "transports/network/network_transport.hpp"
#include "transports/verbs/verbs_wire.hpp"

namespace npushmem {

class VerbsTransport final : public network::NetworkTransport {
public:
    // The parameters of its wires.
    struct WireParameters {
        Host host;
        verbs::Library library;
        verbs::VerbsSettings settings;
        verbs::LocalPe local_pe;
        std::shared_ptr<verbs::MemoryWatch> watch;  // null: none
        std::string note;                           // for people; empty: none
        std::shared_ptr<verbs::RegistrationCaches> caches = std::make_shared<verbs::RegistrationCaches>();
    };

    // `owned` owns `wire`.
    VerbsTransport(const npushmem_transport_params& params, WireParameters wire_parameters, verbs::VerbsWire& wire,
                   std::unique_ptr<network::Wire> owned, network::NetworkSettings settings)
        : NetworkTransport(wire_parameters.host, params, std::move(owned), settings),
          wire_parameters_(std::move(wire_parameters)),
          ports_(wire.ports()),
          single_(&wire) {}
    static Result<std::unique_ptr<Transport>> open(const Host& host, const npushmem_transport_params& params);

    Reach reach(const npushmem_peer& peer) override;
    Result<std::vector<npushmem_device>> devices() override { return ports_; }
    // The first port must be usable. Other ports that are unusable or of another kind of network are left out with a
    // warning.
    Status use_devices(std::span<const std::uint32_t> index) override;
    // The settings of the wires of a PE with these ports.
    [[nodiscard]] verbs::VerbsSettings settings_for(std::span<const std::uint32_t> index) const;

private:
    static void watch_memory(WireParameters& wire_parameters);
    Result<network::MultiRailWire::Rail> open_rail(std::uint32_t index, const verbs::VerbsSettings& settings) const;
    void skip_port(std::uint32_t index, const std::string& why) const;

    WireParameters wire_parameters_;
    std::vector<npushmem_device> ports_;
    verbs::VerbsWire* single_;  // the base's wire; null when it has rails
};

}  // namespace npushmem
