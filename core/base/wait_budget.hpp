// SPDX-License-Identifier: BSD-3-Clause
// How long a wait polls, yields and sleeps, by the PEs that share the cores.
#pragma once

#include <chrono>
#include <cstdint>
#include <string>

namespace npushmem {

// The PEs and the cores of a host. They determine how long a PE polls, yields and sleeps.
struct HostOccupancy {
    double cores = 1.0;  // that the PEs of this host can use together: by affinity and quota, not the number of CPUs
    int pes = 1;         // on this host

    [[nodiscard]] double pes_per_core() const { return pes / cores; }
    bool operator==(const HostOccupancy&) const = default;
};

// The stages of a wait, in this order. An empty stage is skipped.
struct WaitBudget {
    std::uint32_t polls = 0;               // loads without pauses
    std::chrono::nanoseconds spin_for{0};  // then loads with pauses
    std::chrono::nanoseconds yield_for{0};
    std::chrono::nanoseconds first_sleep{50'000};       // then sleeps; each one doubles
    std::chrono::nanoseconds longest_sleep{2'000'000};  // until the wait has lasted a hundred times as long
    // Between checks of the PEs that the wait needs: after the first interval, intervals that grow to the longest.
    std::chrono::nanoseconds first_check{10'000'000};
    std::chrono::nanoseconds longest_check{250'000'000};

    bool operator==(const WaitBudget&) const = default;
};

// With a core for each PE: polls for some microseconds, because no other PE needs the core. With more PEs than cores:
// does not poll, because the awaited PE may be waiting for this core; on two cores, even a short spin doubles the time
// of a barrier of 4 or 8 PEs. Yields for as long as a barrier of that many PEs takes, if that lets others run; longer
// waits sleep. With so many PEs on a core that a barrier takes longer than the longest time of yields, a wait sleeps at
// once: a yield switches to another PE, which costs more than the sleep.
WaitBudget choose_wait_budget(const HostOccupancy& share);

// Returns one line: PEs, cores and the resulting budget.
std::string describe(const HostOccupancy& share, const WaitBudget& budget);

}  // namespace npushmem
