// SPDX-License-Identifier: BSD-3-Clause
#include "core/base/wait_budget.hpp"

#include <fmt/format.h>

#include <algorithm>

namespace npushmem {

namespace {

using std::chrono::microseconds;

constexpr std::uint32_t polls_with_own_core = 64;
// A message through the kernel's TCP takes about as long.
constexpr microseconds spin_with_own_core{12};
constexpr microseconds shortest_yielding{500};
constexpr microseconds yielding_per_pe_on_core{50};
// One second of waiting may cost 10 ms of CPU time; sleeping uses some of it too.
constexpr microseconds longest_yielding{2000};

// A check wakes the thread. So many PEs on a core share the cost of one on a core of its own.
constexpr double pes_per_check = 4;
constexpr std::chrono::nanoseconds max_check = std::chrono::seconds(2);

}  // namespace

WaitBudget choose_wait_budget(const HostOccupancy& share) {
    WaitBudget budget;
    const double oversubscription = std::max(share.pes_per_core(), 1.0);
    if (share.pes <= share.cores) {
        budget.polls = polls_with_own_core;
        budget.spin_for = spin_with_own_core;
    }
    const auto wanted = std::chrono::duration_cast<microseconds>(yielding_per_pe_on_core * oversubscription);
    if (wanted <= longest_yielding) budget.yield_for = std::max(wanted, shortest_yielding);
    const double factor = std::max(oversubscription / pes_per_check, 1.0);
    for (std::chrono::nanoseconds* const interval : {&budget.first_check, &budget.longest_check})
        *interval = std::min(std::chrono::duration_cast<std::chrono::nanoseconds>(*interval * factor), max_check);
    return budget;
}

std::string describe(const HostOccupancy& share, const WaitBudget& budget) {
    const auto us = [](std::chrono::nanoseconds time) { return static_cast<double>(time.count()) / 1000.0; };
    return fmt::format(
        "{} PEs on {:g} usable cores: poll {} times, spin {:g} us, yield {:g} us, then sleep {:g} to {:g} us",
        share.pes, share.cores, budget.polls, us(budget.spin_for), us(budget.yield_for), us(budget.first_sleep),
        us(budget.longest_sleep));
}

}  // namespace npushmem
