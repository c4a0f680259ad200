// The barrier's state in symmetric memory: one 64-byte line for each slot, so that no two members poll one line for
// different reasons.
//
//     offset 0                                            of each member's state, all zero before the first call
//     | line 0: slot 0 of the first algorithm | line 1 | ... | first line of the second algorithm | ...
//     each line is a FutexCounter: the slot's value, and how many sleep on it
//
// Size and places are functions of the team's size alone (see AlgorithmList), so every member computes the same.
#pragma once

#include <atomic>
#include <cstddef>
#include <cstdint>

#include "core/base/futex_counter.hpp"
#include "core/coll/barrier/algorithms.hpp"

namespace npushmem::barrier {

inline constexpr std::size_t line_bytes = FutexCounter::bytes;

// Bytes of state that each member of a team of n provides, aligned to a line and zero.
constexpr std::size_t state_bytes(int n) { return static_cast<std::size_t>(Algorithms::slots(n)) * line_bytes; }

static_assert(state_bytes(1'000'000) <= 64U << 10, "memory per PE must not grow with n");

inline FutexCounter line_at(std::byte* state, int slot) {
    return FutexCounter(state + static_cast<std::size_t>(slot) * line_bytes);
}

inline std::atomic_ref<std::uint64_t> slot_at(std::byte* state, int slot) { return line_at(state, slot).counter(); }

}  // namespace npushmem::barrier
