// SPDX-License-Identifier: BSD-3-Clause
// Routing: the experts that each token of each rank chose, and their weights. Plain values without communication.
#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <vector>

#include "npushmem/plugin/status.hpp"

namespace npushmem::moe {

// Maximum number of choices per token.
constexpr std::int32_t max_top_k = 64;

// The expert id of an absent choice: the token uses one expert less.
constexpr std::int32_t no_expert = -1;

// A view of the routing of one rank's tokens: [tokens, top_k], row-major.
struct RankRouting {
    std::span<const std::int32_t> experts;
    std::span<const float> weights;  // same shape; the weight of an absent expert is ignored

    // Number of tokens.
    [[nodiscard]] std::size_t tokens(std::int32_t top_k) const {
        return experts.size() / static_cast<std::size_t>(top_k);
    }
};

// A whole recorded routing, as a routing file holds it.
struct Routing {
    std::string model;
    std::string origin;  // source of the recording, or options of the generator
    std::int32_t experts = 0;
    std::int32_t top_k = 0;
    std::vector<std::vector<std::int32_t>> expert_ids;  // per rank: [tokens, top_k]
    std::vector<std::vector<float>> weights;            // per rank: [tokens, top_k]

    [[nodiscard]] std::int32_t ranks() const { return static_cast<std::int32_t>(expert_ids.size()); }
    [[nodiscard]] RankRouting rank(std::size_t index) const { return {expert_ids[index], weights[index]}; }
};

// Rejects ids outside [-1, experts) and arrays that are not whole tokens; the message names rank, token and k.
Status check_routing(const RankRouting& routing, std::int32_t experts, std::int32_t top_k, std::int32_t rank);

}  // namespace npushmem::moe
