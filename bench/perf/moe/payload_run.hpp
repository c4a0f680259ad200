// SPDX-License-Identifier: BSD-3-Clause
// The steps that the measurements of combine and dispatch share.
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <vector>

#include "bench/perf/job.hpp"
#include "bench/perf/moe/combine_case.hpp"
#include "bench/perf/moe/layers.hpp"

namespace npushmem::perf {

// Bytes and rows of a call. The same on every PE.
struct PayloadFacts {
    int pes = 1;
    double payload_bytes = 0;  // rows moved by all PEs, per call
    std::vector<double> rows;  // of the experts of each PE
    double sent_rows = 0;      // rows that travel each way, of all PEs
    double tokens = 0;         // of all PEs
};

// Collective. `rows`: of this PE's experts; `sent_rows`: rows that it receives in a dispatch and returns in a combine.
Result<PayloadFacts> gather_facts(const Job& job, const CombineCase& c, std::int64_t rows, std::int64_t sent_rows);

struct PeDifference {
    int pe = 0;
    Difference where;
};

// Collective. Returns the difference of the lowest PE that has one, so that all PEs stop and fail alike.
Result<std::optional<PeDifference>> lowest_pe_difference(const Job& job, const std::optional<Difference>& own);

struct PayloadResult : PayloadFacts {
    BackToBack back_to_back;        // per call, without a barrier
    std::vector<double> ordinary;   // memcpy of the bytes of a call
    std::vector<double> streaming;  // the same with streaming stores
    double copy_processors = 0;     // processor seconds of each PE for the faster of the two copies
    int verified_calls = 0;         // calls whose whole output was compared
    std::int32_t copy = 0;          // NPUSHMEMX_MOE_COPY_...
    std::optional<PeDifference> difference;
};

// The steps write into the result, which is the same on every PE; all are collective.
class PayloadRun {
public:
    PayloadRun(const Job& job, const CombineOptions& options)
        : job_(job), iterations_(options.iterations), repeat_{options.warmup, options.iterations} {}

    // Rows as in gather_facts.
    Status count(PayloadResult& result, const CombineCase& c, std::int64_t rows, std::int64_t sent_rows,
                 std::int32_t copy) const;
    // Keeps the first difference.
    Status share(PayloadResult& result, const std::optional<Difference>& own) const;
    Status time(std::vector<double>& each, const Operation& operation) const;
    Status time_calls(PayloadResult& result, std::vector<double>& each, const Operation& operation) const;
    Status time_copies(PayloadResult& result, const std::byte* source, std::size_t bytes) const;

private:
    const Job& job_;
    int iterations_;
    Repeat repeat_;
};

}  // namespace npushmem::perf
