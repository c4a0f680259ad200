// A network transport over the ports of RDMA devices.
#pragma once

#include "npushmem/plugin/host.hpp"
#include "transports/network/network_transport.hpp"
#include "transports/network/rails_wire.hpp"
#include "transports/verbs/verbs_wire.hpp"

namespace npushmem {

class VerbsTransport final : public network::NetworkTransport {
public:
    // What its wires are made with.
    struct Ground {
        Host host;
        verbs::Library library;
        verbs::VerbsSettings settings;
        verbs::WirePlace place;
        std::shared_ptr<verbs::MemoryWatch> watch;  // null: none
        std::string note;                           // for people; empty: nothing is special
        std::shared_ptr<verbs::RegistrationCaches> caches = std::make_shared<verbs::RegistrationCaches>();
    };

    // `wire` is what `owned` owns.
    VerbsTransport(const npushmem_transport_params& params, Ground ground, verbs::VerbsWire& wire,
                   std::unique_ptr<network::Wire> owned, network::NetworkSettings settings)
        : NetworkTransport(params, std::move(owned), settings),
          ground_(std::move(ground)),
          ports_(wire.ports()),
          single_(&wire) {}
    static Result<std::unique_ptr<Transport>> open(const Host& host, const npushmem_transport_params& params);

    Reach reach(const npushmem_peer& peer) override;
    Result<std::vector<npushmem_device>> devices() override { return ports_; }
    // The first must be usable; others that are not, or of another kind of network, are left out with a word to the
    // log.
    Status use_devices(std::span<const std::uint32_t> index) override;
    // What the wires of a PE with these ports are made with.
    [[nodiscard]] verbs::VerbsSettings settings_for(std::span<const std::uint32_t> index) const;

private:
    static void watch_memory(Ground& ground);
    Result<network::RailsWire::Rail> open_rail(std::uint32_t index, const verbs::VerbsSettings& settings) const;
    void leave_out(std::uint32_t index, const std::string& why) const;

    Ground ground_;
    std::vector<npushmem_device> ports_;
    verbs::VerbsWire* single_;  // the base's; null: it has rails
};

}  // namespace npushmem
