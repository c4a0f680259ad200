// Counts a team's barriers, and times some of them: how long they take, and which PE of this host entered last.
//
// Two readings of the clock cost a third of a short barrier, so one barrier in `every` is timed, the same one by all.
// After it one of the PEs, each in its turn, reads when the others entered. Clocks of different hosts are not compared.
#pragma once

#include <cstdint>
#include <utility>
#include <vector>

#include "core/base/wait_os.hpp"
#include "core/memory/barrier_counters.hpp"
#include "npushmem/plugin/status.hpp"

namespace npushmem {

class BarrierStatistics {
public:
    // `counts`: of the members on this host, in an order that is the same on all of them; `own`: which of them is the
    // caller's. They must be zero before the first barrier and outlive this, as must `os`.
    BarrierStatistics(std::vector<BarrierCounters*> counts, std::size_t own, std::uint64_t every, WaitOs& os)
        : counts_(std::move(counts)), own_(own), every_(every), os_(os) {}

    // Runs `run_barrier` as the barrier of this number (1 for the first), the same on all members.
    template <class Run>
    Code timed_run(std::uint64_t number, Run&& run_barrier) {
        raise(mine().barriers, 1);
        if (number % every_ != 0) return run_barrier();
        const std::int64_t entered = enter(number / every_);
        const Code code = run_barrier();
        if (code == Code::ok) leave(number / every_, entered);
        return code;
    }

private:
    [[nodiscard]] BarrierCounters& mine() const { return *counts_[own_]; }
    // For counters with one writer.
    static void raise(std::atomic<std::uint64_t>& counter, std::uint64_t by) {
        counter.store(counter.load(std::memory_order_relaxed) + by, std::memory_order_relaxed);
    }
    std::int64_t enter(std::uint64_t timed);
    void leave(std::uint64_t timed, std::int64_t entered);
    void find_last_entered(std::uint64_t timed) const;

    std::vector<BarrierCounters*> counts_;
    std::size_t own_;
    std::uint64_t every_;
    WaitOs& os_;
};

}  // namespace npushmem
