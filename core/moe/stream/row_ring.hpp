// Rings that carry rows. A row takes whole units, and a ring holds whole rows, so a write that is split at the ring's
// end is split between rows.
#pragma once

#include <algorithm>
#include <cstdint>

#include "core/moe/combine_config.hpp"
#include "core/moe/ring/ring_shape.hpp"

namespace npushmem::moe {

constexpr Bytes ring_step(Bytes row) { return aligned_up(row, RingShape::unit); }

// A batch of about 64 KiB, and four of them in a ring; no more than `most` rows, which is what can come at all.
// `ring_rows`: the caller's choice of the ring's rows, 0 for none.
constexpr RingShape row_ring_shape(Bytes row, Rows most, Rows ring_rows) {
    constexpr std::uint64_t usual_batch = 64 * 1024;
    const Bytes step = ring_step(row);
    const std::uint64_t usual = 4 * std::max<std::uint64_t>(usual_batch / step.value(), 1);
    const std::uint64_t wanted = ring_rows == Rows{0} ? std::min(usual, most.value()) : ring_rows.value();
    const std::uint64_t rows = std::max<std::uint64_t>(wanted, 1);
    const std::uint64_t batch = std::clamp<std::uint64_t>(usual_batch / step.value(), 1, rows);
    return {step * rows, step * batch, step * batch};
}

// What the rings of a configuration are like: in mode chunked two chunks of rows that are spread evenly over the ranks
// fit, so that a rank can send one while the other is added up.
inline RingShape ring_shape(const CombineConfig& config, std::int32_t ranks) {
    const RingShape usual =
        row_ring_shape(config.row_bytes(), config.slots(), Rows{static_cast<std::uint64_t>(config.ring_rows)});
    if (config.mode != CombineMode::chunked || config.ring_rows > 0) return usual;
    const std::uint64_t rows =
        std::min(2 * config.chunk_slots().value() / static_cast<std::uint64_t>(ranks) + 1, config.slots().value());
    const Bytes size = ring_step(config.row_bytes()) * rows;
    return size > usual.size ? row_ring_shape(config.row_bytes(), config.slots(), Rows{rows}) : usual;
}

}  // namespace npushmem::moe
