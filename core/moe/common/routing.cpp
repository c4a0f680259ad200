// SPDX-License-Identifier: BSD-3-Clause
#include "core/moe/common/routing.hpp"

#include <fmt/format.h>

namespace npushmem::moe {
namespace {

Status check_shape(const RankRouting& routing, std::int32_t top_k, std::int32_t rank) {
    if (routing.experts.size() % static_cast<std::size_t>(top_k) != 0) {
        return {Code::argument, fmt::format("routing of rank {}: {} expert ids are not whole tokens of top_k {}", rank,
                                            routing.experts.size(), top_k)};
    }
    if (routing.weights.size() != routing.experts.size()) {
        return {Code::argument, fmt::format("routing of rank {}: {} expert ids but {} weights; give one weight per id",
                                            rank, routing.experts.size(), routing.weights.size())};
    }
    return {};
}

Status bad_expert(std::size_t index, std::int32_t id, std::int32_t experts, std::int32_t top_k, std::int32_t rank) {
    const auto k = static_cast<std::size_t>(top_k);
    return {Code::range,
            fmt::format("routing of rank {}: token {}, choice {}: expert {} is outside 0..{} (-1 means none)", rank,
                        index / k, index % k, id, experts - 1)};
}

}  // namespace

Status check_routing(const RankRouting& routing, std::int32_t experts, std::int32_t top_k, std::int32_t rank) {
    if (Status shape = check_shape(routing, top_k, rank); !shape.ok()) return shape;
    for (std::size_t i = 0; i < routing.experts.size(); ++i) {
        const std::int32_t id = routing.experts[i];
        if (id < no_expert || id >= experts) return bad_expert(i, id, experts, top_k, rank);
    }
    return {};
}

}  // namespace npushmem::moe
