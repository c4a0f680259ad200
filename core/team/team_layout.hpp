// Where teams keep their state in symmetric memory: a pool of equal slots, one for each team that can exist at a time,
// at the same offset in every PE's slice.
//
//     offset 0                                        of a slot, all zero when a team begins
//     | barrier state, for a team of all PEs | departed | split_record 0 | split_record 1 | counts | workspace of the
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
#include "core/memory/barrier_counters.hpp"

namespace npushmem {

inline constexpr int max_teams = 256;  // at a time, the predefined ones among them

// Which slots are free, as one bit each.
using TeamSlotSet = std::array<std::uint64_t, max_teams / 64>;

// What a member tells the others of a team while they make another one. Written by its PE before a barrier, read by all
// after it; two in turn, so that nobody overwrites what another may still read.
struct alignas(64) SplitRecord {
    std::uint64_t arguments[3];  // of the call: equal on all
    TeamSlotSet free;
    std::uint32_t granted;  // first: this PE wants a team at all; then: the slots chosen could be taken
    std::uint32_t mapped;   // bit i: every member of the new team i is mapped here
};
static_assert(sizeof(SplitRecord) == 64);

struct TeamLayout {
    explicit TeamLayout(int npes) : state_bytes((barrier::state_bytes(npes) + 63) / 64 * 64) {}

    std::uint64_t state_bytes;

    [[nodiscard]] std::uint64_t departed() const { return state_bytes; }
    [[nodiscard]] std::uint64_t split_record(unsigned half) const {
        return state_bytes + 64 + half * sizeof(SplitRecord);
    }
    [[nodiscard]] std::uint64_t counts() const { return split_record(2); }
    [[nodiscard]] std::uint64_t workspace() const { return counts() + sizeof(BarrierCounters); }
    [[nodiscard]] std::uint64_t lines() const { return workspace() + coll::Workspace::bytes; }
    [[nodiscard]] std::uint64_t ring() const { return lines() + coll::CacheLineExchange::bytes; }
    [[nodiscard]] std::uint64_t bytes() const { return ring() + coll::BroadcastRing::bytes; }
};

}  // namespace npushmem
