// SPDX-License-Identifier: BSD-3-Clause
// Helpers of the cases: batches, words and blocks in private memory, and baselines over bare mapped words.
#pragma once

#include <sched.h>

#include <array>
#include <atomic>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include "bench/engine/engine.hpp"
#include "core/base/parking.hpp"

namespace npushmem::bench {

// Returns a batch that calls `once(i)` for i = 0, 1, ... The call is inlined, and the compiler must not change the
// loop. `once` should hold pointers and numbers only: the loop works on a copy, so that they stay in registers.
template <class Once>
Batch repeat(Once once) {
    return [once](std::uint64_t iterations) {
        const Once local = once;
        for (std::uint64_t i = 0; i < iterations; ++i) {
            local(i);
            clobber_memory();
        }
    };
}

template <class Once>
Variant measured(Once once) {
    return {"npushmem", repeat(std::move(once)), false};
}

template <class Once>
Variant baseline(std::string name, Once once) {
    return {std::move(name), repeat(std::move(once)), true};
}

// Single-word operations cycle over these words: few enough to stay in the nearest cache, and enough that no operation
// waits for the previous one on the same word.

inline constexpr std::uint64_t ring_words = 256;
inline constexpr std::size_t ring_bytes = ring_words * sizeof(std::uint64_t);

// The same words in private memory, which the point keeps.
inline std::uint64_t* private_ring(Point& point) {
    auto ring = std::make_shared<std::array<std::uint64_t, ring_words>>();
    point.memory.push_back(ring);
    return ring->data();
}

// Sizes and names of the bandwidth cases.

inline constexpr std::size_t KiB = 1024;
inline constexpr std::size_t MiB = 1024 * KiB;
inline constexpr std::array<std::size_t, 8> block_sizes{1 * KiB,   4 * KiB, 16 * KiB, 64 * KiB,
                                                        256 * KiB, 1 * MiB, 4 * MiB,  8 * MiB};
inline constexpr std::size_t largest_block = block_sizes.back();

// "put 64 KiB"
std::string block_name(const char* operation, std::size_t bytes);

// Private memory as from malloc, but aligned to a page like symmetric memory, and touched. The point keeps it.
std::byte* private_block(Point& point, std::size_t bytes);

// The baselines' own signal: a word in its own cache line, stored by one process and polled by another, with or without
// a pause between polls (which is faster depends on the machine). The launcher ends the whole job if a peer dies, so
// the poll needs no timeout.

inline constexpr std::size_t raw_line_bytes = 128;  // two lines: neighbours are fetched in pairs

inline void raw_set(std::byte* line, std::uint64_t value) {
    // Release: pairs with the acquire in raw_wait.
    std::atomic_ref(*reinterpret_cast<std::uint64_t*>(line)).store(value, std::memory_order_release);
}

// When PEs share a core, the awaited PE needs it, so a waiter polls only a few times before it yields.
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
