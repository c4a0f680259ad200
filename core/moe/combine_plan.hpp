// What one PE, as the holder of experts, has to send in a combine. `x` holds one row for every (token, choice) that
// chose one of its experts, expert-major and, inside an expert, ordered by the rank that owns the token:
//
//   x:  | expert 0: rank 0 rows, rank 1 rows, ... | expert 1: rank 0 rows, ... | ...
//
// offset_table[e][r] is the first row in x of the fragment (e, r), length_table[e][r] its number of rows; both int32
// and row-major [local_experts, ranks]. `slots` says for every row of x where it belongs at its receiver: token * top_k
// + k.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "core/moe/placement.hpp"
#include "core/moe/routing.hpp"
#include "core/moe/units.hpp"

namespace npushmem::moe {

struct Fragment {
    Rows first;
    Rows count;
};

struct CombinePlan {
    std::int32_t local_experts = 0;
    std::int32_t ranks = 0;
    std::int32_t first_expert = 0;  // global number of local expert 0, for messages
    std::vector<std::int32_t> offset_table;
    std::vector<std::int32_t> length_table;
    std::vector<std::uint32_t> slots;  // one per row of x; rows that belong to no fragment hold no_slot
    Rows rows;                         // rows of x

    [[nodiscard]] std::size_t entry(std::int32_t expert, std::int32_t rank) const {
        return static_cast<std::size_t>(expert) * static_cast<std::size_t>(ranks) + static_cast<std::size_t>(rank);
    }
    [[nodiscard]] Fragment fragment(std::int32_t expert, std::int32_t rank) const {
        const std::size_t at = entry(expert, rank);
        return {Rows{static_cast<std::uint64_t>(offset_table[at])}, Rows{static_cast<std::uint64_t>(length_table[at])}};
    }
    // Rows that go to the rank, over all experts.
    [[nodiscard]] Rows rows_to(std::int32_t rank) const;
};

constexpr std::uint32_t no_slot = 0xFFFFFFFFU;

// The plan of rank `self` for the routing of all ranks, which must have passed check_routing. Inside a fragment rows
// are ordered by token, then by choice. Fails when x would have more rows than an int32 table can point to.
Result<CombinePlan> build_combine_plan(std::span<const RankRouting> routing, const ExpertPlacement& placement,
                                       std::int32_t self);

}  // namespace npushmem::moe
