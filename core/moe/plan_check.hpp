// Checks of tables that a caller supplies, made before a byte moves. Each refusal names the expert, the rank and the
// value, because that is what the author of the kernel before this one needs.
#pragma once

#include <span>

#include "core/moe/combine_plan.hpp"
#include "npushmem/plugin/status.hpp"

namespace npushmem::moe {

// Tables that point outside x, negative entries, fragments that overlap, more rows for a rank than `capacity`.
Status check_tables(const CombinePlan& plan, Rows capacity);

// Slots outside the receiver's tokens, given twice, or of a choice that went to another expert; and a number of rows
// for a rank that differs from what that rank's routing says ("ranks that disagree").
Status check_slots(const CombinePlan& plan, std::span<const RankRouting> routing);

}  // namespace npushmem::moe
