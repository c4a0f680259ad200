// What the measurements of a combine and of a dispatch have in common.
#pragma once

#include <cstddef>
#include <optional>
#include <vector>

#include "bench/perf/combine_case.hpp"
#include "bench/perf/measure.hpp"
#include "bench/perf/payload_facts.hpp"

namespace npushmem::perf {

struct PayloadResult : PayloadFacts {
    BackToBack back_to_back;        // per call, without a barrier
    std::vector<double> ordinary;   // memcpy of the bytes of a call
    std::vector<double> streaming;  // the same with streaming stores
    int verified_calls = 0;         // calls whose whole output was compared
    std::int32_t copy = 0;          // NPUSHMEMX_MOE_COPY_...
    std::optional<PeDifference> difference;
};

// The steps write into the result, which is the same on every PE; all are collective.
class PayloadRun {
public:
    PayloadRun(const Job& job, const CombineOptions& options)
        : job_(job), iterations_(options.iterations), repeat_{options.warmup, options.iterations} {}

    // `rows`: of this PE's experts.
    Status count(PayloadResult& result, const CombineCase& c, std::int64_t rows, std::int32_t copy) const;
    // The first difference stays.
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
