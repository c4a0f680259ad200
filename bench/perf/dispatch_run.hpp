// The measurement of the dispatch, and of a whole layer: verified calls, timed calls, baselines, one more verified
// call.
#pragma once

#include <vector>

#include "bench/perf/combine_case.hpp"
#include "bench/perf/payload_run.hpp"

namespace npushmem::perf {

struct DispatchResult : PayloadResult {
    std::vector<double> dispatch;  // seconds per call, after a barrier before each
    std::vector<double> layer;     // a dispatch and its combine
    double control_bytes = 0;      // counts, slots and signals of a dispatch, by all PEs
    std::int64_t capacity = 0;
};

// Collective; the same result on every PE.
Result<DispatchResult> run_dispatch(const Job& job, const CombineCase& c, const CombineOptions& options);

}  // namespace npushmem::perf
