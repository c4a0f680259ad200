// SPDX-License-Identifier: BSD-3-Clause
// The sizes of a ring, and its place in symmetric memory.
//
// Positions are absolute: the number of bytes since creation, 64 bits, never reset and never taken modulo anything but
// for the address. So the fill level is one subtraction, and nothing needs clearing between calls.
#pragma once

#include <algorithm>
#include <cstdint>

#include "core/moe/common/combine_config.hpp"
#include "core/moe/common/element.hpp"
#include "npushmem/plugin/status.hpp"

namespace npushmem::moe {

struct RingShape {
    // Every position and length is a multiple of this unit of the device's plain copies. So both parts of a write
    // across the ring's end are copies of whole units.
    static constexpr std::uint64_t unit = 32;

    Bytes size;     // of the ring
    Bytes batch;    // maximum that is written and committed at once
    Bytes release;  // the receiver publishes its head after taking this much, or before it waits

    // Rejects impossible sizes and names the value; for example a ring smaller than a batch, for whose room the sender
    // would wait without end.
    [[nodiscard]] Status check() const;
};

// A part that does not cross the ring's end: `bytes` bytes at offset `at` in the ring, and at offset `from` in the
// range.
struct RingPiece {
    std::uint64_t at = 0;
    std::uint64_t from = 0;
    std::uint64_t bytes = 0;
};

// Calls visit(piece) for the one or two pieces of the range [position, position + bytes). Returns their number.
template <class Visit>
int for_each_piece(Bytes ring, std::uint64_t position, Bytes bytes, Visit&& visit) {
    if (bytes == Bytes{0}) return 0;
    const std::uint64_t at = position % ring.value();
    const std::uint64_t first = std::min(bytes.value(), ring.value() - at);
    visit(RingPiece{at, 0, first});
    if (first == bytes.value()) return 1;
    visit(RingPiece{0, first, bytes.value() - first});
    return 2;
}

// The rings between one PE and all ranks, in symmetric memory. Every PE has the same layout, so an offset computed here
// is valid in every PE's copy.
//
//   lines of peer 0, 1, ...   four lines of 128 bytes each; each line has one writer, because a core writes whole lines
//                               tail      bytes that the peer has put into its ring here. Written by the peer.
//                               head      bytes that the peer has taken from this PE's ring there. Written by the peer.
//                               sender    this PE's RingSenderState of the ring at the peer; private
//                               receiver  this PE's RingReceiverState of the peer's ring here; private
//   ring of peer 0, 1, ...    `size` bytes, aligned to 512 bytes, and a canary of 128 bytes that no rank writes after
//                             set-up. With RingPlace::receiver the peer's ring to this PE, else this PE's to the peer.
//
// So the tail lies at the receiver and the head at the sender: each side polls its own memory, and only data, one word
// per batch and one word per release cross the link.

class RingLayout {
public:
    static constexpr std::uint64_t line = 128;
    static constexpr std::uint64_t ring_alignment = 512;

    // `shape` must have passed its check.
    constexpr RingLayout(std::int32_t ranks, const RingShape& shape, RingPlace place = RingPlace::receiver)
        : ranks_(ranks), shape_(shape), place_(place) {}

    [[nodiscard]] constexpr const RingShape& shape() const { return shape_; }
    [[nodiscard]] constexpr RingPlace place() const { return place_; }
    [[nodiscard]] constexpr std::int32_t ranks() const { return ranks_; }
    [[nodiscard]] constexpr Bytes tail(std::int32_t source) const { return line_of(source, 0); }
    [[nodiscard]] constexpr Bytes head(std::int32_t destination) const { return line_of(destination, 1); }
    [[nodiscard]] constexpr Bytes sender_state(std::int32_t destination) const { return line_of(destination, 2); }
    [[nodiscard]] constexpr Bytes receiver_state(std::int32_t source) const { return line_of(source, 3); }
    [[nodiscard]] constexpr Bytes ring(std::int32_t peer) const {
        return Bytes{lines().value() + static_cast<std::uint64_t>(peer) * step().value()};
    }
    [[nodiscard]] constexpr Bytes canary(std::int32_t peer) const { return ring(peer) + shape_.size; }
    [[nodiscard]] constexpr Bytes total() const { return ring(ranks_); }

private:
    [[nodiscard]] constexpr Bytes line_of(std::int32_t peer, std::uint64_t which) const {
        return Bytes{(static_cast<std::uint64_t>(peer) * 4 + which) * line};
    }
    [[nodiscard]] constexpr Bytes lines() const { return aligned_up(line_of(ranks_, 0), ring_alignment); }
    [[nodiscard]] constexpr Bytes step() const { return aligned_up(shape_.size + Bytes{line}, ring_alignment); }

    std::int32_t ranks_;
    RingShape shape_;
    RingPlace place_;
};

}  // namespace npushmem::moe
