// Timing of something that all PEs do together.
#pragma once

#include <functional>
#include <vector>

#include "bench/perf/job.hpp"

namespace npushmem::perf {

struct Repeat {
    int warmup = 0;
    int iterations = 1;
};

using Operation = std::function<Status()>;

// Seconds per iteration, from the moment the first PE begins to the moment the last PE has ended, by the host's common
// clock; a barrier comes before each. The same on every PE. Collective.
Result<std::vector<double>> time_each(const Job& job, const Repeat& repeat, const Operation& operation);

// Per iteration of back-to-back calls without a barrier.
struct BackToBack {
    double seconds = 0;
    double processor_seconds = 0;  // of one PE on average: what it computed, copied and polled, not what it slept
};
// `iterations` calls. Collective; the same on every PE.
Result<BackToBack> time_back_to_back(const Job& job, int iterations, const Operation& operation);

}  // namespace npushmem::perf
