// What a case moves per call, and the first wrong element that any PE has found: the same on every PE.
#pragma once

#include <cstdint>
#include <optional>
#include <vector>

#include "bench/perf/combine_layer.hpp"
#include "bench/perf/job.hpp"

namespace npushmem::perf {

struct PayloadFacts {
    int pes = 1;
    double payload_bytes = 0;  // rows moved by all PEs, per call
    std::vector<double> rows;  // of the experts of each PE
    double tokens = 0;         // of all PEs
};

// Collective. `rows`: of this PE's experts.
Result<PayloadFacts> gather_facts(const Job& job, const CombineCase& c, std::int64_t rows);

struct PeDifference {
    int pe = 0;
    Difference where;
};

// Collective: the lowest PE's difference, so that all stop and fail alike.
Result<std::optional<PeDifference>> lowest_pe_difference(const Job& job, const std::optional<Difference>& own);

}  // namespace npushmem::perf
