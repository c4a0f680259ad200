// Where teams keep their state in symmetric memory: a pool of equal places, one for each team that can exist at a time,
// at the same offset in every PE's slice.
//
//     offset 0                                        of a place, all zero when a team begins
//     | barrier state, for a team of all PEs | departed | agreement 0 | agreement 1 | counts | workspace of the
//       collectives | lines | ring |
//
// Sizes are functions of the number of PEs alone.
#pragma once

#include <array>
#include <atomic>
#include <cstddef>
#include <cstdint>

#include "core/coll/barrier/state.hpp"
#include "core/coll/group.hpp"
#include "core/memory/meeting_counts.hpp"

namespace npushmem {

inline constexpr int most_teams = 256;  // at a time, the predefined ones among them

// Which places are free, as one bit each.
using PlaceSet = std::array<std::uint64_t, most_teams / 64>;

// What a member tells the others of a team while they make another one. Written by its PE before a meeting, read by all
// after it; two in turn, so that nobody overwrites what another may still read.
struct alignas(64) Agreement {
    std::uint64_t arguments[3];  // of the call: equal on all
    PlaceSet free;
    std::uint32_t granted;  // first: this PE wants a team at all; then: the places chosen could be taken
    std::uint32_t mapped;   // bit i: every member of the new team i is mapped here
};
static_assert(sizeof(Agreement) == 64);

struct TeamLayout {
    explicit TeamLayout(int npes) : state_bytes((barrier::state_bytes(npes) + 63) / 64 * 64) {}

    std::uint64_t state_bytes;

    [[nodiscard]] std::uint64_t departed() const { return state_bytes; }
    [[nodiscard]] std::uint64_t agreement(unsigned half) const { return state_bytes + 64 + half * sizeof(Agreement); }
    [[nodiscard]] std::uint64_t counts() const { return agreement(2); }
    [[nodiscard]] std::uint64_t workspace() const { return counts() + sizeof(MeetingCounts); }
    [[nodiscard]] std::uint64_t lines() const { return workspace() + coll::Workspace::bytes; }
    [[nodiscard]] std::uint64_t ring() const { return lines() + coll::LineExchange::bytes; }
    [[nodiscard]] std::uint64_t bytes() const { return ring() + coll::BroadcastRing::bytes; }
};

}  // namespace npushmem
