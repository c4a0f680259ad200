// SPDX-License-Identifier: BSD-3-Clause
// Lets a PE that stores into the memory of another PE wake that PE's wait for it. A PE that sleeps in wait_until
// announces in its slice which bytes it awaits. A PE of the host that stores one element, updates a signal or makes an
// atomic update looks there afterwards: while nobody sleeps that is one load of a line that nobody writes.
//
// The writer has no fence between its store and its look, because that would cost more than the store. So it can miss a
// sleeper that announces itself at the same moment, and stores through pointers, larger puts and expanded functions
// (npushmem/inline.h) wake nobody. Therefore the sleeper also wakes up by itself, first after 50 us, then after an
// eighth of the time that it has slept.
#pragma once

#include <atomic>
#include <chrono>
#include <cstddef>
#include <cstdint>
#include <optional>

#include "core/base/parking.hpp"

namespace npushmem {

// In the slice of the PE that waits. Initially zero. A process that dies in its sleep stays counted: later writers then
// make system calls that wake nobody.
struct alignas(64) AwaitedBytes {
    std::atomic<std::uint32_t> sleepers;  // threads of the PE that sleep
    std::atomic<std::uint32_t> wakes;     // the futex on which they sleep
    // Of the awaited bytes, in the slice; all bytes, if several threads sleep. Relaxed: a writer that reads the range
    // of an earlier wait wakes a sleeper in vain or not at all.
    std::atomic<std::uint64_t> offset;
    std::atomic<std::uint64_t> bytes;
};
static_assert(sizeof(AwaitedBytes) == 64);
inline constexpr std::size_t awaited_bytes_offset = 704;  // in a slice

inline AwaitedBytes& awaited_bytes_of(std::byte* slice) {
    return *reinterpret_cast<AwaitedBytes*>(slice + awaited_bytes_offset);
}

inline bool has_sleepers(std::byte* slice) {
    return awaited_bytes_of(slice).sleepers.load(std::memory_order_relaxed) != 0;
}

// Wakes the sleepers if they await one of these bytes of the slice.
void wake_sleepers_in(std::byte* slice, const void* target, std::uint64_t bytes);

// For the writer, after its store of `bytes` to `target` in the slice.
inline void wake_awaiting_pe(std::byte* slice, const void* target, std::uint64_t bytes) {
    if (has_sleepers(slice)) [[unlikely]]
        wake_sleepers_in(slice, target, bytes);
}

// For one wait of a thread of the PE. After a wake in vain the thread sleeps for a while without an announcement, so
// that many writers may update a counter that one of them completes.
class AwaitedBytesParking final : public Parking {
public:
    static constexpr std::chrono::nanoseconds shortest_sleep{50'000};
    static constexpr std::chrono::nanoseconds longest_pause{2'000'000};
    static constexpr int sleeps_per_wait = 8;

    // The awaited bytes are in the slice that has this record.
    AwaitedBytesParking(AwaitedBytes& awaited, std::uint64_t offset, std::uint64_t bytes)
        : awaited_(awaited), offset_(offset), bytes_(bytes) {}
    ~AwaitedBytesParking() override { withdraw(); }

    void announce() override;
    void park(WaitOs& os, std::chrono::nanoseconds longest) override;
    // The wait stays announced until it ends, so that writers between two sleeps find it, too.
    void retract() override {}

private:
    void withdraw();

    AwaitedBytes& awaited_;
    const std::uint64_t offset_;
    const std::uint64_t bytes_;
    bool announced_ = false;
    bool woken_ = false;      // from the last sleep
    std::uint32_t seen_ = 0;  // of `wakes`, before the last check of the condition
    std::chrono::nanoseconds pause_ = shortest_sleep;
    std::optional<std::chrono::nanoseconds> began_;  // at the first sleep
};

}  // namespace npushmem
