// SPDX-License-Identifier: BSD-3-Clause
// How unevenly a routing loads experts, ranks and pairs of ranks.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "core/moe/common/routing.hpp"

namespace npushmem::moe {

struct RoutingLoad {
    std::vector<std::int64_t> expert_rows;  // per expert: the choices of it
    std::vector<std::int64_t> rank_rows;    // per rank: the choices of its experts
    std::vector<std::int64_t> pair_rows;    // [ranks, ranks], from the token's rank to the expert's
    std::vector<std::int64_t>
        pair_token_rows;       // same shape, where a token sends one row to a rank for all its choices there
    std::int64_t dropped = 0;  // choices of no expert
};

// The experts are spread over as many ranks as own tokens. The routing must have passed check_routing.
RoutingLoad routing_load(const Routing& routing);

// The load as text. Skew is the maximum divided by the mean.
std::string routing_load_text(const Routing& routing);

}  // namespace npushmem::moe
