// SPDX-License-Identifier: BSD-3-Clause
// Decorator that does not offer mapped memory, so that every access is a call. It tests the code path of a network
// without a network.
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
