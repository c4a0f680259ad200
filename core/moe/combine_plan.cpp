#include "core/moe/combine_plan.hpp"

#include <fmt/format.h>

#include <limits>

namespace npushmem::moe {
namespace {

// Calls visit(local expert, rank, slot) for every choice of an expert that `self` holds, in the order rank, token, k.
template <class Visit>
void for_each_row(std::span<const RankRouting> routing, const ExpertPlacement& placement, std::int32_t self,
                  const Visit& visit) {
    const std::int32_t first = placement.first_expert(self);
    const std::int32_t last = placement.first_expert(self + 1);
    for (std::size_t rank = 0; rank < routing.size(); ++rank) {
        const auto& ids = routing[rank].experts;
        for (std::size_t slot = 0; slot < ids.size(); ++slot) {
            if (ids[slot] >= first && ids[slot] < last) {
                visit(ids[slot] - first, static_cast<std::int32_t>(rank), static_cast<std::uint32_t>(slot));
            }
        }
    }
}

CombinePlan empty_plan(const ExpertPlacement& placement, std::int32_t self) {
    CombinePlan plan;
    plan.local_experts = placement.local_experts(self);
    plan.ranks = placement.ranks();
    plan.first_expert = placement.first_expert(self);
    const std::size_t entries = plan.entry(plan.local_experts, 0);
    plan.offset_table.assign(entries, 0);
    plan.length_table.assign(entries, 0);
    return plan;
}

// Fills the offsets from the lengths; the sum is kept in 64 bits so that an overflow of int32 shows.
std::uint64_t fill_offsets(CombinePlan& plan) {
    std::uint64_t next = 0;
    for (std::size_t i = 0; i < plan.length_table.size(); ++i) {
        plan.offset_table[i] = static_cast<std::int32_t>(next);
        next += static_cast<std::uint64_t>(plan.length_table[i]);
    }
    return next;
}

}  // namespace

Rows CombinePlan::rows_to(std::int32_t rank) const {
    Rows total;
    for (std::int32_t expert = 0; expert < local_experts; ++expert) total += fragment(expert, rank).count;
    return total;
}

Result<CombinePlan> build_combine_plan(std::span<const RankRouting> routing, const ExpertPlacement& placement,
                                       std::int32_t self) {
    CombinePlan plan = empty_plan(placement, self);
    for_each_row(routing, placement, self,
                 [&](std::int32_t e, std::int32_t r, std::uint32_t) { ++plan.length_table[plan.entry(e, r)]; });
    plan.rows = Rows{fill_offsets(plan)};
    if (plan.rows.value() > static_cast<std::uint64_t>(std::numeric_limits<std::int32_t>::max())) {
        return Status{Code::range, fmt::format("rank {} would hold {} rows, more than a 32-bit table can point to; "
                                               "use fewer tokens per call or more ranks",
                                               self, plan.rows.value())};
    }
    plan.slots.resize(plan.rows.value());
    std::vector<std::int32_t> cursor = plan.offset_table;
    for_each_row(routing, placement, self, [&](std::int32_t e, std::int32_t r, std::uint32_t slot) {
        plan.slots[static_cast<std::size_t>(cursor[plan.entry(e, r)]++)] = slot;
    });
    return plan;
}

}  // namespace npushmem::moe
