// A network transport over UCX.
#pragma once

#include "transports/network/network_transport.hpp"

namespace npushmem {

class UcxTransport final : public network::NetworkTransport {
public:
    using NetworkTransport::NetworkTransport;
    static Result<std::unique_ptr<Transport>> open(const Host& host, const npushmem_transport_params& params);
};

}  // namespace npushmem
