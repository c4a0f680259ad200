// How this PE waits: the parts that every Waiter refers to, kept together because they must outlive it.
#pragma once

#include <functional>
#include <memory>
#include <span>

#include "core/base/wait.hpp"
#include "core/map/host_layout.hpp"
#include "core/runtime/job_liveness.hpp"
#include "core/runtime/pe_record.hpp"

namespace npushmem {

// Of the most crowded machine of the job: the same number on every PE, for what all must choose alike.
double max_pes_per_core(std::span<const PeRecord> records);

struct WaitServices {
    WaitServices(std::span<const PeRecord> records, const HostLayout& layout, int my_pe);
    WaitServices(const WaitServices&) = delete;
    WaitServices& operator=(const WaitServices&) = delete;

    HostOccupancy share;
    WaitBudget budget;
    SystemWaitOs os;
    WaitCounters counters;
    JobLiveness liveness;
    // For waits inside the transports' code, which make progress themselves.
    Waiter transport_waiter;
    // For everything else; calls `progress`, which may be set until the first wait.
    std::function<void()> progress;
    Waiter driving_waiter;
};

}  // namespace npushmem
