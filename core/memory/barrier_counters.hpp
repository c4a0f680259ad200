// What is counted of one PE with NPUSHMEM_STATS=1; lives in its control block, so that others can read it.
//
// All relaxed: numbers for people. Each group that one party writes has a cache line of its own.
#pragma once

#include <atomic>
#include <cstdint>

namespace npushmem {

struct BarrierCounters {
    // By the PE itself. Collective calls that contain a barrier count as well.
    alignas(64) std::atomic<std::uint64_t> barriers;
    std::atomic<std::uint64_t> timed;  // of them
    std::atomic<std::uint64_t> nanoseconds;
    std::atomic<std::uint64_t> longest;  // nanoseconds
    // When it entered the last two timed barriers, by parity: a PE may be at the next one already while another still
    // reads, and nobody gets to the one after that before the reader has come to the next.
    std::atomic<std::int64_t> entered_at[2];

    // By whoever looked who came last to a timed barrier.
    alignas(64) std::atomic<std::uint64_t> entered_last;
    std::atomic<std::uint64_t> late_nanoseconds;  // after the last but one

    // By the PE itself at finalize, see WaitCounters.
    alignas(64) std::atomic<std::uint64_t> waits;
    std::atomic<std::uint64_t> wait_nanoseconds;
    std::atomic<std::uint64_t> spins;
    std::atomic<std::uint64_t> yields;
    std::atomic<std::uint64_t> sleeps;
    std::atomic<std::uint64_t> parks;
    std::atomic<std::uint64_t> liveness_checks;
    std::atomic<std::uint64_t> wakes;
};
static_assert(sizeof(BarrierCounters) == 192);

}  // namespace npushmem
