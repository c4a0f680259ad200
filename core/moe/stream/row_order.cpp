// SPDX-License-Identifier: BSD-3-Clause
#include "core/moe/stream/row_order.hpp"

#include <algorithm>

namespace npushmem::moe {
namespace {

// First row of each expert, and the end of the last expert's rows.
std::vector<std::uint64_t> begins_of(std::span<const std::int32_t> experts, std::int32_t count) {
    std::vector<std::uint64_t> begins(static_cast<std::size_t>(count) + 1, 0);
    for (const std::int32_t expert : experts) {
        if (expert >= 0) ++begins[static_cast<std::size_t>(expert) + 1];
    }
    for (std::size_t i = 1; i < begins.size(); ++i) begins[i] += begins[i - 1];
    return begins;
}

// Appends a chunk's choices, which start at `first_slot`, to the order.
void add_chunk(RowOrder& order, std::span<const std::int32_t> experts, const ExpertPlacement& placement,
               std::uint64_t first_slot) {
    const std::int32_t ranks = placement.ranks();
    const std::uint64_t before = order.slots.size();
    std::vector<std::uint64_t> next = begins_of(experts, placement.first_expert(ranks));
    for (std::int32_t rank = 0; rank <= ranks; ++rank) {
        order.first.push_back(before + next[static_cast<std::size_t>(placement.first_expert(rank))]);
    }
    order.slots.resize(before + next.back());
    for (std::size_t i = 0; i < experts.size(); ++i) {
        if (experts[i] < 0) continue;
        order.slots[before + next[static_cast<std::size_t>(experts[i])]++] = static_cast<std::uint32_t>(first_slot + i);
    }
}

}  // namespace

RowOrder row_order(std::span<const std::int32_t> experts, const ExpertPlacement& placement, Rows chunk_slots,
                   std::uint64_t chunks) {
    RowOrder order;
    for (std::uint64_t chunk = 0; chunk < chunks; ++chunk) {
        const std::uint64_t first = std::min<std::uint64_t>(chunk * chunk_slots.value(), experts.size());
        const std::uint64_t count = std::min<std::uint64_t>(chunk_slots.value(), experts.size() - first);
        add_chunk(order, experts.subspan(first, count), placement, first);
    }
    return order;
}

}  // namespace npushmem::moe
