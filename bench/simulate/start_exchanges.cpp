// SPDX-License-Identifier: BSD-3-Clause
#include "bench/simulate/start_exchanges.hpp"

#include "core/base/shared_segment.hpp"
#include "core/runtime/start_exchange.hpp"

namespace npushmem::simulate {

StartTraits StartTraits::typical(bool several_hosts) {
    if (!several_hosts) return {};
    return {.several_hosts = true, .has_fabric = true, .has_nics = true, .endpoint_bytes = 256};
}

std::vector<StartExchange> start_exchanges(const StartTraits& traits) {
    std::vector<StartExchange> all{
        {"PE records", sizeof(PeRecord), true},
    };
    if (traits.several_hosts) all.push_back({"what most PEs have in common", sizeof(CommonRecord), true});
    all.push_back({"handles of the hosts' memory", sizeof(SegmentHandle), false});
    if (traits.several_hosts) {
        all.push_back({"whether all want a transport between hosts", 1, false});
        all.push_back({"whether no host has a fabric", 1, false});
        all.push_back({"hash of the candidates' order", 8, false});
        all.push_back({"whether the candidate opens", 1, false});
        if (traits.has_fabric) all.push_back({"whether the candidate drives no NICs", 1, false});
    }
    if (traits.several_hosts) all.push_back({"need of NICs", 8, false});
    if (traits.has_nics) all.push_back({"barrier: NICs are assigned", 0, false});
    constexpr std::uint64_t length = sizeof(std::uint32_t);
    if (traits.several_hosts)
        all.push_back({"lengths of the endpoints", length, false});
    else
        all.push_back({"barrier: the endpoints are in the host's memory", 0, false});
    if (traits.several_hosts || length + traits.endpoint_bytes > endpoint_row_bytes)
        all.push_back({"endpoints", length + traits.endpoint_bytes, true});
    all.push_back({"whether all peers are mapped", 8, false});
    all.push_back({"barrier: the world's barrier exists", 0, false});
    return all;
}

}  // namespace npushmem::simulate
