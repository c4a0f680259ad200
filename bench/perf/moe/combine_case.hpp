// SPDX-License-Identifier: BSD-3-Clause
// Options of `npushmem-perf combine` and `dispatch`, and the case that follows from them.
#pragma once

#include <CLI/CLI.hpp>
#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "bench/perf/moe/workloads.hpp"
#include "core/moe/common/routing.hpp"
#include "npushmem/plugin/status.hpp"

namespace npushmem::perf {

// One structure, although it has many members: each is the value of one option on the command line.
struct CombineOptions {
    std::string model = "deepseek-v3-decode";
    std::string routing_file;           // empty: generate
    std::optional<std::int32_t> layer;  // of a routing file with several; absent: all, one after another
    std::optional<std::int32_t> experts;
    std::optional<std::int32_t> top_k;
    std::optional<std::int32_t> tokens;
    std::optional<std::int64_t> hidden;
    std::string type = "bf16";
    std::string copy = "auto";
    std::string mode = "direct";
    std::string ring = "receiver";
    std::string rows = "choice";
    std::string slots = "packed";  // of a dispatch
    double zipf = 1.0;
    std::uint64_t seed = 1;
    int iterations = 30;
    int warmup = 5;
    bool verify = true;
    bool audit = false;
    std::string csv;
    std::string svg;
};

// Adds the options to the subcommand; their values go to `options`, which must outlive it.
void declare_options(CLI::App& app, CombineOptions& options);

// Resources of the job and the machine.

struct JobResources {
    int pe = 0;
    int pes = 1;
    std::uint64_t heap_bytes = 0;    // free in one PE's symmetric heap
    std::uint64_t memory_bytes = 0;  // of the host, for all its PEs; 0: unknown
    int receive_buffers = 2;         // number of buffers of a PE's rows in its heap
};

// The case to measure, as it follows from options, routing file and machine: sizes, this PE's routing, and the
// adjustments.
struct CombineCase {
    Workload workload;  // tokens: the maximum over all PEs
    std::string routing_origin;
    std::vector<std::string> adjustments;  // differences from the named model, as text
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
