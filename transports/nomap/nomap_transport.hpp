// Hides that the wrapped transport could map memory, so that every access goes through calls: for testing the path that
// programs take over a network without having one.
#pragma once

#include <memory>

#include "npushmem/plugin/decorator_transport.hpp"

namespace npushmem {

class NomapTransport final : public DecoratorTransport {
public:
    static Result<std::unique_ptr<Transport>> open(const Host& host, const npushmem_transport_params& params);

    explicit NomapTransport(const npushmem_transport_params& params) : DecoratorTransport(params, NPUSHMEM_CAP_MAP) {}

    Reach reach(const npushmem_peer& peer) override;
};

inline Result<std::unique_ptr<Transport>> NomapTransport::open(const Host& /*host*/,
                                                               const npushmem_transport_params& params) {
    if (Status s = check_inner(params); !s.ok()) return s;
    return std::unique_ptr<Transport>(std::make_unique<NomapTransport>(params));
}

inline Reach NomapTransport::reach(const npushmem_peer& peer) {
    Reach out = DecoratorTransport::reach(peer);
    if (out.reachable()) out.why += ", mapping hidden";
    return out;
}

}  // namespace npushmem
