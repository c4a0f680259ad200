#include "transports/nomap/nomap_transport.hpp"

namespace npushmem {

Result<std::unique_ptr<Transport>> NomapTransport::open(const Host& /*host*/, const npushmem_transport_params& params) {
    if (Status s = check_inner(params); !s.ok()) return s;
    return std::unique_ptr<Transport>(std::make_unique<NomapTransport>(params));
}

Reach NomapTransport::reach(const npushmem_peer& peer) {
    Reach out = DecoratorTransport::reach(peer);
    if (out.reachable()) out.why += ", mapping hidden";
    return out;
}

}  // namespace npushmem
