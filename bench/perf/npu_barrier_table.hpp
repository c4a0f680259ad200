// What npushmem-perf npu-barrier found, as text and as a drawing.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

namespace npushmem::perf {

// Of one member in one barrier.
struct BarrierTraffic {
    std::uint64_t remote_writes = 0;
    std::uint64_t remote_reads = 0;  // words of other PEs that are waited for
};

struct BarrierRow {
    std::string algorithm;
    int pes;
    double seconds;
    double virtual_seconds;  // on the modelled device
    BarrierTraffic traffic;
};

// Which of its times.
using BarrierTime = double BarrierRow::*;

struct BarrierTable {
    std::vector<BarrierRow> rows;
};

// With the fastest algorithm of each size named, and where the fastest changes, in real and in virtual time.
std::string barrier_table_text(const BarrierTable& table);
std::string barrier_table_svg(const BarrierTable& table, BarrierTime time);

}  // namespace npushmem::perf
