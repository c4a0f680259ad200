// What a run of the combine case found, on every PE alike.
#pragma once

#include <vector>

#include "bench/perf/npu_barrier.hpp"
#include "bench/perf/payload_run.hpp"
#include "npushmem/moe.h"

namespace npushmem::perf {

struct CombineResult : PayloadResult {
    npushmemx_moe_traffic_t traffic{};  // of all PEs; `calls` too counts each PE's
    BarrierLatency barrier;
    std::vector<double> combine;     // seconds per call, after a barrier before each
    std::vector<double> gathering;   // plan 2: rows packed per rank while they are copied
    std::vector<double> reordering;  // plan 1: rows put in order first, then copied
};

}  // namespace npushmem::perf
