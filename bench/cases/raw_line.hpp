// The baselines' own way of telling another process something: a word in a cache line of its own, a store there, a
// polling load here, with or without a pause between two polls: which is faster differs between machines. A peer that
// dies ends the whole job through the launcher, so the poll needs no deadline.
#pragma once

#include <sched.h>

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <thread>

#include "core/base/parking.hpp"

namespace npushmem::bench {

inline constexpr std::size_t raw_line_bytes = 128;  // two lines: neighbours are fetched in pairs

inline void raw_set(std::byte* line, std::uint64_t value) {
    // Release: pairs with the acquire in raw_wait.
    std::atomic_ref(*reinterpret_cast<std::uint64_t*>(line)).store(value, std::memory_order_release);
}

// When PEs share a core, the one that is waited for needs it: then polls before a yield are few.
inline int raw_polls(int pes) {
    constexpr int with_own_core = 20'000;
    return static_cast<int>(std::thread::hardware_concurrency()) < pes ? 1 : with_own_core;
}

enum class Pause { none, each_poll };

template <Pause pause = Pause::none>
void raw_wait(std::byte* line, std::uint64_t value, int polls_before_yield) {
    std::atomic_ref word(*reinterpret_cast<std::uint64_t*>(line));
    int polls = 0;
    // Acquire: pairs with the release in raw_set.
    while (word.load(std::memory_order_acquire) < value) {
        if constexpr (pause == Pause::each_poll) cpu_pause();
        if (++polls % polls_before_yield == 0) sched_yield();
    }
}

}  // namespace npushmem::bench
