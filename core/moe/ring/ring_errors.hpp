// SPDX-License-Identifier: BSD-3-Clause
// Checks and error messages of a ring.
#pragma once

#include <chrono>
#include <cstdint>

#include "core/moe/ring/ring_layout.hpp"

namespace npushmem::moe {

// The two ranks of a ring.
struct RingRanks {
    int own = 0;
    int peer = 0;
};

// `tail` and `head` as the reporting side knows them.
struct RingPositions {
    std::uint64_t head = 0;
    std::uint64_t tail = 0;
};

// The status of a wait for room for `wanted` bytes that failed with `cause` after `waited`.
Status ring_full_status(const RingRanks& ranks, const RingShape& shape, const RingPositions& known, Bytes wanted,
                        std::chrono::nanoseconds waited, const Status& cause);

// The status of a wait for data that failed with `cause` after `waited`.
Status ring_empty_status(const RingRanks& ranks, const RingPositions& known, std::chrono::nanoseconds waited,
                         const Status& cause);

// The status for `bytes` that are not a multiple of the unit, or exceed a batch.
Status batch_size_status(const RingRanks& ranks, const RingShape& shape, Bytes bytes);

// Checks that the receiver may have written `seen` as its head after known.head: not smaller, and not beyond the tail.
// Fails with Code::aborted if the peer has aborted without further progress, and with Code::protocol for an impossible
// value.
Status check_head(const RingRanks& ranks, const RingPositions& known, std::uint64_t seen);

// The same for a tail: not smaller, and not further ahead of known.head than the ring's size.
Status check_tail(const RingRanks& ranks, const RingShape& shape, const RingPositions& known, std::uint64_t seen);

}  // namespace npushmem::moe
