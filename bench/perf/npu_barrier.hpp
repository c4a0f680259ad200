// Latency of the NPU's barrier over all PEs, measured inside one kernel.
#pragma once

#include "bench/perf/job.hpp"
#include "bench/perf/statistics.hpp"

namespace npushmem::perf {

struct BarrierLatency {
    Spread seconds;
    int cores = 0;  // of the launch
};

// Collective. Times of this PE's first core.
Result<BarrierLatency> npu_barrier_latency(const Job& job, int warmup, int iterations);

}  // namespace npushmem::perf
