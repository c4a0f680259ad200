// SPDX-License-Identifier: BSD-3-Clause
// Lets a PE that stores into the memory of another PE, and a transport that delivers to it, wake that PE's wait. A PE
// that sleeps in wait_until, in a barrier or in a collective between hosts announces in its slice which bytes it
// awaits, and counts itself among the sleepers of its host. A PE that maps the slice reads that count when it puts one
// element or a few bytes, updates a signal or makes an atomic update: while nobody sleeps that is one load of a line
// that nobody writes. The signals of barriers and the transports look into the slice each time.
//
// A writer that reads the count has no fence between its store and that load, because that would cost more than the
// store. So it can miss a sleeper that announces itself at the same moment. Stores through pointers, of kernels and by
// the functions of npushmem/inline.h, and larger puts, wake nobody. Therefore the sleeper also wakes up by itself: 50
// us after each announcement, then after a 32nd of the time that it has waited.
#pragma once

#include <atomic>
#include <chrono>
#include <cstddef>
#include <cstdint>
#include <optional>

#include "core/base/parking.hpp"

namespace npushmem {

// In the slice of the PE that waits. Initially zero. A process that dies in its sleep stays counted, here and in the
// host's count: later writers then do more work, which wakes nobody.
struct alignas(64) AwaitedBytes {
    std::atomic<std::uint32_t> sleepers;  // announced threads of the PE
    std::atomic<std::uint32_t> wakes;     // the futex on which they sleep
    // The awaited range of the slice: all of it if several threads wait, nothing after a writer has woken them.
    // Relaxed: a writer that reads the range of another wait wakes the PE needlessly, or not at all.
    std::atomic<std::uint64_t> offset;
    std::atomic<std::uint64_t> bytes;
};
static_assert(sizeof(AwaitedBytes) == 64);
inline constexpr std::size_t awaited_bytes_offset = 704;  // in a slice

inline AwaitedBytes& awaited_bytes_of(std::byte* slice) {
    return *reinterpret_cast<AwaitedBytes*>(slice + awaited_bytes_offset);
}

// For the writer, after its store of `bytes` to `target` in a slice, if a PE of the host sleeps: wakes the sleepers
// that await one of these bytes. Returns their number.
std::uint32_t wake_sleepers_in(std::byte* slice, const void* target, std::uint64_t bytes);

// For a transport that has delivered something to the slice of its PE, at an unknown place: wakes all sleepers. The
// calling thread may itself be in a wait: it is awake, and is not counted. Any thread of the PE.
void wake_all_sleepers_in(std::byte* slice);

// For one wait of a thread of the PE. After a spurious wake-up the thread sleeps for a while without an announcement,
// so that the many writers of a counter do not wake it each time.
class AwaitedBytesParking final : public Parking {
public:
    static constexpr std::chrono::nanoseconds shortest_sleep{50'000};
    static constexpr std::chrono::nanoseconds longest_pause{2'000'000};
    static constexpr int fallback_divisor = 32;  // of the time waited so far

    // The awaited bytes are in the slice that has this record. `host_sleepers`: the host's count.
    AwaitedBytesParking(std::atomic<std::uint32_t>& host_sleepers, AwaitedBytes& awaited, std::uint64_t offset,
                        std::uint64_t bytes)
        : host_sleepers_(host_sleepers), awaited_(awaited), offset_(offset), bytes_(bytes) {}
    ~AwaitedBytesParking() override { withdraw(); }

    void announce() override;
    void park(WaitOs& os, std::chrono::nanoseconds longest) override;
    // Does nothing: a wait stays announced between two sleeps, so that writers find it there, too.
    void retract() override {}

private:
    bool publish(bool all);
    void withdraw();

    std::atomic<std::uint32_t>& host_sleepers_;
    AwaitedBytes& awaited_;
    const std::uint64_t offset_;
    const std::uint64_t bytes_;
    bool announced_ = false;
    bool is_new_ = false;     // the announcement
    bool woken_ = false;      // from the last sleep
    std::uint32_t seen_ = 0;  // of `wakes`, before the last check of the condition
    std::chrono::nanoseconds pause_ = shortest_sleep;
    std::optional<std::chrono::nanoseconds> began_;  // at the first sleep
};

}  // namespace npushmem
