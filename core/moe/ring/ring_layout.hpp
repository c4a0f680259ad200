// The rings between one PE and all ranks, in symmetric memory. Every PE has the same layout, so an offset computed here
// is valid in every PE's copy.
//
//   lines of peer 0, 1, ...   four lines of 128 bytes each; every line has one writer, because a core writes whole
//   lines
//                             back:
//                               tail      bytes that the peer has put into its ring here. Written by the peer.
//                               head      bytes that the peer has taken from this PE's ring there. Written by the peer.
//                               sender    this PE's RingSenderState of the ring at the peer; private
//                               receiver  this PE's RingReceiverState of the peer's ring here; private
//   ring of peer 0, 1, ...    `size` bytes, begun on 512 bytes, and a canary of 128 bytes that nobody writes after
//                             set-up. With RingPlace::receiver the peer's ring to this PE, else this PE's to the peer.
//
// So the tail lies at the receiver, the head at the sender: each side polls its own memory, and what crosses the link
// is data, one word per batch and one word per release.
#pragma once

#include <cstdint>

#include "core/moe/ring/ring_shape.hpp"

namespace npushmem::moe {

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
