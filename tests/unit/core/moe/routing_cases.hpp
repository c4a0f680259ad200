// SPDX-License-Identifier: BSD-3-Clause
// Random routings for all shapes of the test matrix, with absent choices and ranks without tokens.
#pragma once

#include <algorithm>
#include <cstdint>
#include <random>
#include <vector>

#include "core/moe/common/routing.hpp"

namespace npushmem::moe {

struct CaseShape {
    std::int32_t ranks = 2;
    std::int32_t experts = 4;
    std::int32_t top_k = 2;
    std::int32_t tokens = 5;  // of every rank but the empty ones
    std::uint32_t seed = 1;
    double absent = 0.1;           // share of -1
    std::int32_t empty_rank = -1;  // a rank without tokens
    std::int32_t first_used = 0;   // experts below are never chosen ...
    std::int32_t last_used = -1;   // ... nor above (-1: all)
};

inline std::int32_t random_expert(const CaseShape& shape, std::mt19937& random) {
    const std::int32_t last = shape.last_used < 0 ? shape.experts - 1 : shape.last_used;
    if (std::uniform_real_distribution<double>(0, 1)(random) < shape.absent) return no_expert;
    return std::uniform_int_distribution<std::int32_t>(shape.first_used, last)(random);
}

inline Routing random_routing(const CaseShape& shape) {
    std::mt19937 random(shape.seed);
    Routing routing{"test", "random", shape.experts, shape.top_k, {}, {}};
    for (std::int32_t rank = 0; rank < shape.ranks; ++rank) {
        auto& ids = routing.expert_ids.emplace_back();
        auto& weights = routing.weights.emplace_back();
        const std::int32_t choices = rank == shape.empty_rank ? 0 : shape.tokens * shape.top_k;
        for (std::int32_t i = 0; i < choices; ++i) {
            ids.push_back(random_expert(shape, random));
            weights.push_back(0.5F * static_cast<float>(1U << (random() % 4)));
        }
    }
    return routing;
}

// Weights whose products round, so that the result shows the order of additions.
inline void use_inexact_weights(Routing& routing) {
    std::mt19937 random(77);
    for (auto& weights : routing.weights) {
        for (float& weight : weights) weight = std::uniform_real_distribution<float>(-1, 1)(random);
    }
}

inline std::vector<RankRouting> views_of(const Routing& routing) {
    std::vector<RankRouting> views;
    for (std::size_t rank = 0; rank < routing.expert_ids.size(); ++rank) views.push_back(routing.rank(rank));
    return views;
}

}  // namespace npushmem::moe
