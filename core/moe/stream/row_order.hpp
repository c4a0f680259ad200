// SPDX-License-Identifier: BSD-3-Clause
// The order in which a rank's rows arrive through a ring. The receiver derives each row's slot from it.
#pragma once

#include <algorithm>
#include <cstdint>
#include <span>
#include <vector>

#include "core/moe/common/combine_config.hpp"
#include "core/moe/common/combine_plan.hpp"
#include "core/moe/ring/ring_layout.hpp"

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

// Rings that carry rows. A row takes whole units, and a ring holds whole rows, so a write that is split at the ring's
// end is split between rows.

constexpr Bytes ring_step(Bytes row) { return aligned_up(row, RingShape::unit); }

// A batch of about 64 KiB, and four batches in a ring, but at most `most` rows, the maximum that can arrive.
// `ring_rows`: the ring's rows as the caller chose them; 0: no choice.
constexpr RingShape row_ring_shape(Bytes row, Rows most, Rows ring_rows) {
    constexpr std::uint64_t usual_batch = 64 * 1024;
    const Bytes step = ring_step(row);
    const std::uint64_t usual = 4 * std::max<std::uint64_t>(usual_batch / step.value(), 1);
    const std::uint64_t wanted = ring_rows == Rows{0} ? std::min(usual, most.value()) : ring_rows.value();
    const std::uint64_t rows = std::max<std::uint64_t>(wanted, 1);
    const std::uint64_t batch = std::clamp<std::uint64_t>(usual_batch / step.value(), 1, rows);
    return {step * rows, step * batch, step * batch};
}

// The rings' shape for a configuration. In mode chunked two chunks of rows fit if they are spread evenly over the
// ranks, so that a rank can send one chunk while the receiver adds up the other.
inline RingShape ring_shape(const CombineConfig& config, std::int32_t ranks) {
    const RingShape usual =
        row_ring_shape(config.returned_row(), config.slots(), Rows{static_cast<std::uint64_t>(config.ring_rows)});
    if (config.mode != CombineMode::chunked || config.ring_rows > 0) return usual;
    const std::uint64_t rows =
        std::min(2 * config.chunk_slots().value() / static_cast<std::uint64_t>(ranks) + 1, config.slots().value());
    const Bytes size = ring_step(config.returned_row()) * rows;
    return size > usual.size ? row_ring_shape(config.returned_row(), config.slots(), Rows{rows}) : usual;
}

}  // namespace npushmem::moe
