// What is counted of one PE with NPUSHMEM_STATS=1; lives in its control block, so that others can read it.
//
// All relaxed: numbers for people. Each group that one party writes has a cache line of its own.
#pragma once

#include <atomic>
#include <cstdint>

namespace npushmem {

struct MeetingCounts {
    // By the PE itself. A meeting is a barrier of the team or a call that contains one.
    alignas(64) std::atomic<std::uint64_t> meetings;
    std::atomic<std::uint64_t> timed;  // of them
    std::atomic<std::uint64_t> nanoseconds;
    std::atomic<std::uint64_t> longest;  // nanoseconds
    // When it came to the last two timed meetings, by parity: a PE may be at the next one already while another still
    // reads, and nobody gets to the one after that before the reader has come to the next.
    std::atomic<std::int64_t> came[2];

    // By whoever looked who came last to a timed meeting.
    alignas(64) std::atomic<std::uint64_t> last;
    std::atomic<std::uint64_t> late_nanoseconds;  // after the last but one

    // By the PE itself at finalize, see WaitCounters.
    alignas(64) std::atomic<std::uint64_t> waits;
    std::atomic<std::uint64_t> wait_nanoseconds;
    std::atomic<std::uint64_t> spins;
    std::atomic<std::uint64_t> yields;
    std::atomic<std::uint64_t> sleeps;
    std::atomic<std::uint64_t> parks;
    std::atomic<std::uint64_t> asks;
    std::atomic<std::uint64_t> wakes;
};
static_assert(sizeof(MeetingCounts) == 192);

}  // namespace npushmem
