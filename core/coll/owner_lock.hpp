// SPDX-License-Identifier: BSD-3-Clause
// A lock that survives its holders: one word with the holder's PE + 1, 0: free. A PE that finds the holder dead takes
// the lock from it. Unlike the ticket lock it is not fair: tickets of dead PEs would block those after them.
// The protocol is a template over its memory, so that tests explore the code that runs.
#pragma once

#include <concepts>
#include <cstdint>

#include "npushmem/plugin/status.hpp"

namespace npushmem::coll {

template <class M>
concept OwnerMemory = requires(M memory, std::uint64_t word, std::uint64_t& before) {
    // Replaces `word`, if it is the lock's, by another; `before` is the lock's word before (acquire and release).
    { memory.compare_swap(word, word, before) } -> std::same_as<Code>;
};

// Takes the lock for `own`. `wait_for_change(holder, holder_died)` returns ok once the lock's word is no longer
// `holder`, or the holder is dead; then it sets `holder_died`. Other codes end the call.
template <OwnerMemory M, class WaitForChange>
Code take_owned(M& memory, std::uint64_t own, WaitForChange&& wait_for_change) {
    for (std::uint64_t expected = 0;;) {
        std::uint64_t before = 0;
        if (const Code swapped = memory.compare_swap(expected, own, before); swapped != Code::ok) return swapped;
        if (before == expected) return Code::ok;
        expected = 0;
        if (before == 0) continue;
        bool holder_died = false;
        if (const Code waited = wait_for_change(before, holder_died); waited != Code::ok) return waited;
        if (holder_died) expected = before;
    }
}

// A release that arrives after the holder's death changes nothing, if another PE has taken the lock.
template <OwnerMemory M>
Code release_owned(M& memory, std::uint64_t own) {
    std::uint64_t before = 0;
    return memory.compare_swap(own, 0, before);
}

}  // namespace npushmem::coll
