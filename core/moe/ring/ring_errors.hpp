// What a ring says when it cannot go on.
#pragma once

#include <chrono>
#include <cstdint>

#include "core/moe/ring/ring_shape.hpp"

namespace npushmem::moe {

// Who is at which end.
struct RingRanks {
    int own = 0;
    int peer = 0;
};

// `tail` and `head` as the side that complains knows them.
struct RingPositions {
    std::uint64_t head = 0;
    std::uint64_t tail = 0;
};

// The wait for room for `wanted` bytes ended after `waited` because of `cause`.
Status ring_full_status(const RingRanks& ranks, const RingShape& shape, const RingPositions& known, Bytes wanted,
                        std::chrono::nanoseconds waited, const Status& cause);

// The wait for data ended.
Status ring_empty_status(const RingRanks& ranks, const RingPositions& known, std::chrono::nanoseconds waited,
                         const Status& cause);

// Not a whole number of units, or more than a batch.
Status batch_size_status(const RingRanks& ranks, const RingShape& shape, Bytes bytes);

// Whether the receiver may have written `seen` as its head, after known.head: no step back, not beyond the tail. Fails
// with Code::aborted when the peer has aborted and done nothing since, with Code::protocol for any other value.
Status check_head(const RingRanks& ranks, const RingPositions& known, std::uint64_t seen);

// The same of a tail: no step back, not further ahead of known.head than the ring's size.
Status check_tail(const RingRanks& ranks, const RingShape& shape, const RingPositions& known, std::uint64_t seen);

}  // namespace npushmem::moe
