// The measurement of the dispatch, and of a whole layer: verified calls, timed calls, baselines, one more verified
// call.
#pragma once

#include <optional>
#include <vector>

#include "bench/perf/combine_case.hpp"
#include "bench/perf/payload_facts.hpp"

namespace npushmem::perf {

struct DispatchResult : PayloadFacts {
    std::vector<double> dispatch;   // seconds per call, PEs meeting before each
    double in_a_row = 0;            // seconds per call without meeting
    std::vector<double> layer;      // a dispatch and its combine
    std::vector<double> ordinary;   // memcpy of the bytes of a dispatch
    std::vector<double> streaming;  // the same with streaming stores
    double control_bytes = 0;       // counts, slots and signals of a dispatch, by all PEs
    std::int64_t capacity = 0;
    int verified_calls = 0;
    std::int32_t copy = 0;  // NPUSHMEMX_MOE_COPY_...
    std::optional<PeDifference> difference;
};

// Collective; the same result on every PE.
Result<DispatchResult> run_dispatch(const Job& job, const CombineCase& c, const CombineOptions& options);

}  // namespace npushmem::perf
