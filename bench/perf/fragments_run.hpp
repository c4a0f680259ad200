// The sender's gathering beside memcpy, by the length of the fragments: what lies together in x and goes to one rank.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "bench/perf/job.hpp"
#include "bench/perf/measure.hpp"

namespace npushmem::perf {

// Rows of one fragment, and the least that its ratio to memcpy should be.
struct FragmentKind {
    const char* name;
    std::int64_t row_bytes;
    std::int32_t rows;
    double target;
};

const std::vector<FragmentKind>& fragment_kinds();

// Seconds of each repetition, from the first PE's begin to the last one's end.
struct FragmentTimes {
    double bytes = 0;  // of all PEs
    std::vector<double> memcpy_ordinary;
    std::vector<double> memcpy_streaming;
    std::vector<double> gather_ordinary;  // plan 2
    std::vector<double> gather_streaming;
    std::vector<double> reorder_ordinary;  // plan 1
    std::vector<double> reorder_streaming;
};

// Collective; the same on every PE. `bytes`: of each PE, about.
Result<FragmentTimes> time_fragments(const Job& job, const FragmentKind& kind, std::int64_t bytes,
                                     const Repeat& repeat);

}  // namespace npushmem::perf
