// Every rank's expert ids, where every rank can read them: the input of the plan of a layer that is given its routing
// alone. (A dispatch makes the plan without it.)
#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "core/moe/combine_config.hpp"
#include "core/moe/routing.hpp"
#include "core/moe/symmetric_memory.hpp"

namespace npushmem::moe {

class RoutingExchange {
public:
    // Symmetric bytes needed: a count, then room for the ids of max_tokens tokens.
    static Bytes size(const CombineConfig& config);

    RoutingExchange(SymmetricMemory& memory, std::byte* block) : memory_(memory), block_(block) {}

    // Not collective by itself: shows this rank's ids, for those who collect after the next barrier.
    void publish(const RankRouting& own);
    // After a barrier: takes a copy of every rank's ids.
    Status collect();
    // What collect() took; weights are empty, they stay with their rank.
    [[nodiscard]] std::span<const RankRouting> all() const { return views_; }

private:
    Status collect_from(int rank);

    SymmetricMemory& memory_;
    std::byte* block_;
    std::vector<std::vector<std::int32_t>> ids_;
    std::vector<RankRouting> views_;
};

}  // namespace npushmem::moe
