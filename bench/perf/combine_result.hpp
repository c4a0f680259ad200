// What a run of the combine case found, on every PE alike.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "bench/perf/layer.hpp"
#include "bench/perf/npu_barrier.hpp"

namespace npushmem::perf {

struct PeDifference {
    int pe = 0;
    Difference where;
};

struct CombineResult {
    int pes = 1;
    BarrierLatency barrier;
    std::vector<double> combine;    // seconds per call, PEs meeting before each
    double in_a_row = 0;            // seconds per call without meeting
    std::vector<double> ordinary;   // memcpy of the same bytes
    std::vector<double> streaming;  // the same with streaming stores
    double payload_bytes = 0;       // rows sent by all PEs, per call
    std::vector<double> rows;       // sent, per PE
    double tokens = 0;              // output rows of all PEs
    int verified_calls = 0;         // calls whose whole output was compared
    std::int32_t copy = 0;          // NPUSHMEMX_MOE_COPY_...
    std::optional<PeDifference> difference;
};

}  // namespace npushmem::perf
