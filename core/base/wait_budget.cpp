#include "core/base/wait_budget.hpp"

#include <fmt/format.h>

#include <algorithm>

namespace npushmem {
namespace {

using std::chrono::microseconds;

constexpr std::uint32_t polls_with_own_core = 64;
constexpr microseconds spin_with_own_core{5};
constexpr microseconds shortest_yielding{500};
constexpr microseconds yielding_per_pe_on_core{50};
// A second of waiting may cost 10 ms of CPU time; sleeping takes some of it as well.
constexpr microseconds longest_yielding{2000};

}  // namespace

WaitBudget choose_wait_budget(const HostOccupancy& share) {
    WaitBudget budget;
    const double oversubscription = std::max(share.pes_per_core(), 1.0);
    if (share.pes <= share.cores) {
        budget.polls = polls_with_own_core;
        budget.spin_for = spin_with_own_core;
    }
    const auto wanted = std::chrono::duration_cast<microseconds>(yielding_per_pe_on_core * oversubscription);
    budget.yield_for = std::clamp(wanted, shortest_yielding, longest_yielding);
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
