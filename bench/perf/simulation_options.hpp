// SPDX-License-Identifier: BSD-3-Clause
// Options and output that the subcommands with a cost model for many PEs share.
#pragma once

#include <CLI/CLI.hpp>
#include <string>
#include <vector>

#include "bench/engine/report.hpp"
#include "bench/simulate/model.hpp"
#include "npushmem/plugin/status.hpp"

namespace npushmem::perf {

struct SimulationOptions {
    std::vector<int> members{100, 1000, 10'000, 100'000, 1'000'000};
    int per_node = 8;
    std::string parameters;
    std::string json;

    // The default model with the parameters of the file.
    [[nodiscard]] Result<simulate::Model> model() const;
    // Writes the table for --json, and prints `text` unless that replaces it.
    [[nodiscard]] Status deliver(const bench::ResultTable& table, const std::string& text) const;
};

// --pes and --pes-per-node, with their descriptions.
void declare_sizes(CLI::App& app, SimulationOptions& options, const std::string& pes, const std::string& per_node);
// --parameters and --json.
void declare_model(CLI::App& app, SimulationOptions& options);

}  // namespace npushmem::perf
