// How long a PE polls, yields and sleeps while it waits: a function of how many PEs share how many cores.
#pragma once

#include <chrono>
#include <cstdint>
#include <string>

namespace npushmem {

struct HostOccupancy {
    double cores = 1.0;  // usable by the PEs of this host together: affinity and quota, not the number of CPUs
    int pes = 1;         // on this host

    [[nodiscard]] double pes_per_core() const { return pes / cores; }
    bool operator==(const HostOccupancy&) const = default;
};

// Stages in this order; a stage with nothing in it is skipped.
struct WaitBudget {
    std::uint32_t polls = 0;               // loads without a pause between them
    std::chrono::nanoseconds spin_for{0};  // then loads with a pause
    std::chrono::nanoseconds yield_for{0};
    std::chrono::nanoseconds first_sleep{50'000};  // then sleeps, doubling
    std::chrono::nanoseconds longest_sleep{2'000'000};

    bool operator==(const WaitBudget&) const = default;
};

// A core for each PE: some microseconds of polling, because nobody else wants the core. More PEs than cores: none at
// all, because the PE that is waited for may be waiting for this very core; measured on two cores, even a short spin
// doubles the time of a barrier of 4 or 8. Yielding lasts as long as a barrier of that many PEs, sleep is for what
// lasts longer.
WaitBudget choose_wait_budget(const HostOccupancy& share);

// One line for a person: PEs, cores, and what follows from them.
std::string describe(const HostOccupancy& share, const WaitBudget& budget);

}  // namespace npushmem
