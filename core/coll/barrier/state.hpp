// The barrier's state in symmetric memory: one 64-byte line for each slot, so that no two members poll one line for
// different reasons.
//
//     offset 0                                            of each member's state, all zero before the first call
//     | line 0: slot 0 of the first algorithm | line 1 | ... | first line of the second algorithm | ...
//     each line: bytes 0..7 the slot's value (native byte order), bytes 8..63 unused
//
// Size and places are functions of the team's size alone (see AlgorithmList), so every member computes the same.
#pragma once

#include <atomic>
#include <cstddef>
#include <cstdint>

#include "core/coll/barrier/algorithms.hpp"

namespace npushmem::barrier {

inline constexpr std::size_t line_bytes = 64;

// Bytes of state that each member of a team of n provides, aligned to a line and zero.
constexpr std::size_t state_bytes(int n) { return static_cast<std::size_t>(Algorithms::slots(n)) * line_bytes; }

static_assert(state_bytes(1'000'000) <= 64U << 10, "memory per PE must not grow with n");

inline std::atomic_ref<std::uint64_t> slot_at(std::byte* state, int slot) {
    return std::atomic_ref(*reinterpret_cast<std::uint64_t*>(state + static_cast<std::size_t>(slot) * line_bytes));
}
static_assert(std::atomic_ref<std::uint64_t>::is_always_lock_free, "slots are shared between processes");

}  // namespace npushmem::barrier
