// In which order a rank's rows come to it through a ring, which is what tells the receiver where each belongs.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "core/moe/combine_plan.hpp"
#include "core/moe/placement.hpp"

namespace npushmem::moe {

// In chunk c the rows of source r are slots[f[r]] to slots[f[r + 1]], exclusive, with f = first + c * (ranks + 1):
// expert after expert, and inside an expert by token, then by choice, as build_combine_plan orders them at the source.
struct RowOrder {
    std::vector<std::uint32_t> slots;
    std::vector<std::uint64_t> first;  // [chunks, ranks + 1]
};

// `experts`: [tokens, top_k] of the receiving rank, which have passed check_routing. Always `chunks` chunks of
// chunk_slots choices, the last ones short or empty.
RowOrder row_order(std::span<const std::int32_t> experts, const ExpertPlacement& placement, Rows chunk_slots,
                   std::uint64_t chunks);

// Refuses tables of a caller whose rows inside a fragment come in another order, naming expert, rank and row.
Status check_order(const CombinePlan& plan);

}  // namespace npushmem::moe
