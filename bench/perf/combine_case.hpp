// The case to measure, as options, routing file and machine make it: sizes, this PE's routing, and what was changed to
// fit, in words.
#pragma once

#include <string>
#include <vector>

#include "bench/perf/combine_options.hpp"
#include "bench/perf/workloads.hpp"
#include "core/moe/routing.hpp"
#include "npushmem/plugin/status.hpp"

namespace npushmem::perf {

// What the job and the machine offer.
struct JobResources {
    int pe = 0;
    int pes = 1;
    std::uint64_t heap_bytes = 0;    // free in one PE's symmetric heap
    std::uint64_t memory_bytes = 0;  // of the host, for all its PEs; 0: unknown
    int receive_buffers = 2;         // how often the rows of a PE lie in its heap
};

struct CombineCase {
    Workload workload;  // tokens: the most of any PE
    std::string routing_origin;
    std::vector<std::string> adjustments;  // how the case differs from what its name stands for
    std::vector<std::int32_t> expert_ids;  // of this PE: [tokens, top_k]
    std::vector<float> weights;

    [[nodiscard]] std::int64_t own_tokens() const {
        return static_cast<std::int64_t>(expert_ids.size()) / workload.top_k;
    }
    [[nodiscard]] std::int64_t row_bytes() const {
        return workload.hidden * static_cast<std::int64_t>(moe::size_of(workload.type));
    }
};

Result<CombineCase> make_combine_case(const CombineOptions& options, const JobResources& resources);

}  // namespace npushmem::perf
