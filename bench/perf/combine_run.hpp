// The measurement itself: verified calls, barrier, timed calls, baselines, one more verified call.
#pragma once

#include "bench/perf/combine_result.hpp"
#include "bench/perf/job.hpp"

namespace npushmem::perf {

// Collective; the same result on every PE.
Result<CombineResult> run_combine(const Job& job, const CombineCase& c, const CombineOptions& options);

}  // namespace npushmem::perf
