// SPDX-License-Identifier: BSD-3-Clause
// The receiver's symmetric memory in direct mode. Every PE has the same layout, so an offset computed here is valid in
// every PE's copy. (S = slot_stride, C = max_tokens * top_k slots.)
//
//   0                      one 128-byte line per source rank; word 0: the last epoch whose rows from that rank have all
//                          arrived (uint64). Written by that rank only, read by the owner only.
//   buffer(0)              C slots of S bytes, [token][k]; the rows of even epochs
//   canary(0)              128 bytes that no rank writes after set-up
//   buffer(1)              C slots; the rows of odd epochs
//   canary(1)              128 bytes
//
// Two buffers are enough, and calls need neither clearing nor a barrier between them: let p be in epoch e + 2, about to
// write into buffer(e) of q. p has returned from epoch e + 1, so it has seen q's signal of epoch e + 1. q sets that
// signal only after it returned from epoch e, that is after it reduced buffer(e). So p's write comes after q's last
// read. The argument needs every rank to signal every rank in every epoch, also a rank to which it sends no row. For
// the same reason a signal word never runs more than one epoch ahead of its reader.
#pragma once

#include <cstdint>

#include "core/moe/common/element.hpp"

namespace npushmem::moe {

class SlotLayout {
public:
    static constexpr std::uint64_t line = 128;

    constexpr SlotLayout(std::int32_t ranks, Rows slots, Bytes row)
        : ranks_(ranks), slots_(slots), row_(row), stride_(aligned_up(row, row.value() >= 512 ? 64 : 32)) {}

    // Rows of at least 512 bytes begin on a cache line, so that streaming stores fill whole lines. Shorter rows begin
    // on 32 bytes, which the device's copies need.
    [[nodiscard]] constexpr Bytes slot_stride() const { return stride_; }
    [[nodiscard]] constexpr Bytes row_bytes() const { return row_; }
    [[nodiscard]] constexpr Rows slots() const { return slots_; }

    [[nodiscard]] constexpr Bytes signal(std::int32_t source) const {
        return Bytes{static_cast<std::uint64_t>(source) * line};
    }
    [[nodiscard]] constexpr Bytes buffer(std::uint64_t epoch) const {
        return Bytes{control_bytes() + (epoch & 1U) * (buffer_bytes() + line)};
    }
    // Wraps around after the last slot: a call in chunks has more rows than slots.
    [[nodiscard]] constexpr std::uint64_t in_buffer(std::uint64_t index) const { return index % slots_.value(); }
    [[nodiscard]] constexpr Bytes slot(std::uint64_t epoch, std::uint64_t index) const {
        return buffer(epoch) + stride_ * in_buffer(index);
    }
    [[nodiscard]] constexpr Bytes canary(std::uint64_t epoch) const { return buffer(epoch) + Bytes{buffer_bytes()}; }
    [[nodiscard]] constexpr Bytes total() const { return Bytes{control_bytes() + 2 * (buffer_bytes() + line)}; }

private:
    [[nodiscard]] constexpr std::uint64_t control_bytes() const { return static_cast<std::uint64_t>(ranks_) * line; }
    [[nodiscard]] constexpr std::uint64_t buffer_bytes() const {
        return aligned_up(bytes_of(slots_, stride_), line).value();
    }

    std::int32_t ranks_;
    Rows slots_;
    Bytes row_;
    Bytes stride_;
};

}  // namespace npushmem::moe
