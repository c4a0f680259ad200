// A network transport over the ports of RDMA devices.
#pragma once

#include "transports/network/network_transport.hpp"

namespace npushmem {

namespace verbs {
class VerbsWire;
}

class VerbsTransport final : public network::NetworkTransport {
public:
    // `wire` is what `owned` owns.
    VerbsTransport(const npushmem_transport_params& params, verbs::VerbsWire& wire,
                   std::unique_ptr<network::Wire> owned, network::NetworkSettings settings)
        : NetworkTransport(params, std::move(owned), settings), wire_(wire) {}
    static Result<std::unique_ptr<Transport>> open(const Host& host, const npushmem_transport_params& params);

    Result<std::vector<npushmem_device>> devices() override;
    // Takes the first.
    Status use_devices(std::span<const std::uint32_t> index) override;

private:
    verbs::VerbsWire& wire_;  // the base's
};

}  // namespace npushmem
