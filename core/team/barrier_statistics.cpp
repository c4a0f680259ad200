#include "core/team/barrier_statistics.hpp"

#include <algorithm>

namespace npushmem {

std::int64_t BarrierStatistics::enter(std::uint64_t timed) {
    const std::int64_t now = os_.now().count();
    // Relaxed: whoever reads it does so after the barrier, which orders it.
    mine().entered_at[timed % 2].store(now, std::memory_order_relaxed);
    return now;
}

void BarrierStatistics::leave(std::uint64_t timed, std::int64_t entered) {
    const auto took = static_cast<std::uint64_t>(os_.now().count() - entered);
    raise(mine().timed, 1);
    raise(mine().nanoseconds, took);
    mine().longest.store(std::max(took, mine().longest.load(std::memory_order_relaxed)), std::memory_order_relaxed);
    if (counts_.size() > 1 && timed % counts_.size() == own_) find_last_entered(timed);
}

void BarrierStatistics::find_last_entered(std::uint64_t timed) const {
    std::size_t last = 0;
    std::int64_t latest = 0;
    std::int64_t before = 0;  // the last but one
    for (std::size_t i = 0; i < counts_.size(); ++i) {
        const std::int64_t entered = counts_[i]->entered_at[timed % 2].load(std::memory_order_relaxed);
        before = std::max(before, std::min(entered, latest));
        if (entered <= latest) continue;
        latest = entered;
        last = i;
    }
    // Readers of two barriers may be at work at the same time.
    counts_[last]->entered_last.fetch_add(1, std::memory_order_relaxed);
    counts_[last]->late_nanoseconds.fetch_add(static_cast<std::uint64_t>(latest - before), std::memory_order_relaxed);
}

}  // namespace npushmem
