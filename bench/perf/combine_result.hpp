// What a run of the combine case found, on every PE alike.
#pragma once

#include <cstdint>
#include <optional>
#include <vector>

#include "bench/perf/npu_barrier.hpp"
#include "bench/perf/payload_facts.hpp"

namespace npushmem::perf {

struct CombineResult : PayloadFacts {
    BarrierLatency barrier;
    std::vector<double> combine;     // seconds per call, PEs meeting before each
    double in_a_row = 0;             // seconds per call without meeting
    std::vector<double> ordinary;    // memcpy of the same bytes
    std::vector<double> streaming;   // the same with streaming stores
    std::vector<double> gathering;   // plan 2: rows packed per rank while they are copied
    std::vector<double> reordering;  // plan 1: rows put in order first, then copied
    int verified_calls = 0;          // calls whose whole output was compared
    std::int32_t copy = 0;           // NPUSHMEMX_MOE_COPY_...
    std::optional<PeDifference> difference;
};

}  // namespace npushmem::perf
