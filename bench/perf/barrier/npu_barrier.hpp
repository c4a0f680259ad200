// SPDX-License-Identifier: BSD-3-Clause
// Latency of the NPU's barriers, and the table of results of npushmem-perf npu-barrier.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "bench/engine/statistics.hpp"
#include "bench/perf/job.hpp"

namespace npushmem::perf {

struct BarrierLatency {
    bench::Summary seconds;
    int cores = 0;  // of the launch
};

// Measures inside one kernel, on this PE's first core. Collective.
Result<BarrierLatency> npu_barrier_latency(const Job& job, int warmup, int iterations);

// Traffic of one member in one barrier.
struct BarrierTraffic {
    std::uint64_t remote_writes = 0;
    std::uint64_t remote_reads = 0;  // words of other PEs on which the member waits
};

struct BarrierRow {
    std::string algorithm;
    int pes;
    double seconds;
    double virtual_seconds;  // on the modelled device
    BarrierTraffic traffic;
};

// Selects the real or the virtual time of a row.
using BarrierTime = double BarrierRow::*;

struct BarrierTable {
    std::vector<BarrierRow> rows;
};

// The table with the fastest algorithm of each size, and the sizes at which it changes, in real and in virtual time.
std::string barrier_table_text(const BarrierTable& table);
// A chart of the latency by number of PEs, one curve per algorithm. The rows of an algorithm ascend by PEs.
std::string barrier_table_svg(const BarrierTable& table, BarrierTime time);

}  // namespace npushmem::perf
