// In which order a rank's rows come to it through a ring, which is what tells the receiver where each belongs.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "core/moe/combine_plan.hpp"
#include "core/moe/placement.hpp"

namespace npushmem::moe {

// The rows of source r are slots[first[r]] to slots[first[r + 1]], exclusive: expert after expert, and inside an expert
// by token, then by choice, as build_combine_plan orders them at the source.
struct RowOrder {
    std::vector<std::uint32_t> slots;
    std::vector<std::uint64_t> first;  // [ranks + 1]
};

// `experts`: [tokens, top_k] of the receiving rank, which have passed check_routing.
RowOrder row_order(std::span<const std::int32_t> experts, const ExpertPlacement& placement);

// Refuses tables of a caller whose rows inside a fragment come in another order, naming expert, rank and row.
Status check_order(const CombinePlan& plan);

}  // namespace npushmem::moe
