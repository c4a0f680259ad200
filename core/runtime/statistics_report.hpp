// The table that NPUSHMEM_STATS=1 prints at finalize.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "core/base/wait.hpp"
#include "core/memory/control_block.hpp"

namespace npushmem {

// A snapshot of BarrierCounters and WaitCounters.
struct PeStatistics {
    std::uint64_t barriers = 0;
    std::uint64_t timed = 0;
    std::uint64_t nanoseconds = 0;
    std::uint64_t longest = 0;
    std::uint64_t last = 0;
    std::uint64_t late_nanoseconds = 0;
    std::uint64_t waits = 0;
    std::uint64_t wait_nanoseconds = 0;
    std::uint64_t spins = 0;
    std::uint64_t yields = 0;
    std::uint64_t sleeps = 0;
    std::uint64_t parks = 0;
    std::uint64_t liveness_checks = 0;
    std::uint64_t wakes = 0;

    bool operator==(const PeStatistics&) const = default;
};

// Copies the counters to where other PEs read them.
void publish(const WaitCounters& waits, BarrierCounters& counts);
PeStatistics read_statistics(const BarrierCounters& counts);

// Returns a table with a line per PE and the sum. With more than `max_shown` PEs, it shows those that arrived last most
// often. `pes` is indexed by PE; one barrier in `every` was timed.
std::string describe_statistics(const std::vector<PeStatistics>& pes, std::uint64_t every, std::size_t max_shown = 16);

}  // namespace npushmem
