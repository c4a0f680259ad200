// The sizes of a ring, and how a stretch of its endless stream of bytes lies in it.
//
// Positions are absolute: the number of bytes since creation, 64 bits, never reset and never taken modulo anything but
// for the address. So "how much is in the ring" is one subtraction, and calls follow each other with nothing to clear.
#pragma once

#include <algorithm>
#include <cstdint>

#include "core/moe/units.hpp"
#include "npushmem/plugin/status.hpp"

namespace npushmem::moe {

// Where a ring's bytes lie: in the memory of the rank that takes them, or of the rank that writes them, from which the
// other one then copies them. Tail and head lie where they are waited for in either case.
enum class RingPlace : std::int32_t { receiver = 0, sender = 1 };

struct RingShape {
    // Every position and length is a multiple of it: what the device copies plainly. So both parts of a write across
    // the ring's end are copies of whole units.
    static constexpr std::uint64_t unit = 32;

    Bytes size;     // of the ring
    Bytes batch;    // most that is written and announced at once
    Bytes release;  // the receiver tells of room when it has taken as much, or is about to wait

    // Refuses what could never work, naming the value: among others a ring smaller than a batch, for which the sender
    // would wait for ever.
    [[nodiscard]] Status check() const;
};

// A part that does not cross the ring's end: `bytes` at `at` in the ring, `from` bytes behind the stretch's begin.
struct RingPiece {
    std::uint64_t at = 0;
    std::uint64_t from = 0;
    std::uint64_t bytes = 0;
};

// Calls visit(piece) for the one or two parts of [position, position + bytes). Returns how many.
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

}  // namespace npushmem::moe
