// SPDX-License-Identifier: BSD-3-Clause
#include "bench/perf/simulation_options.hpp"

#include <iostream>

#include "bench/perf/measure_command.hpp"

namespace npushmem::perf {

Result<simulate::Model> SimulationOptions::model() const {
    simulate::Model model = simulate::default_model();
    const Status read = simulate::read_model_file(parameters, model);
    return read.ok() ? Result<simulate::Model>(model) : Result<simulate::Model>(read);
}

Status SimulationOptions::deliver(const bench::ResultTable& table, const std::string& text) const {
    if (Status written = write_json(json, json_report(table)); !written.ok()) return written;
    if (!is_standard_output(json)) std::cout << text;
    return {};
}

void declare_sizes(CLI::App& app, SimulationOptions& options, const std::string& pes, const std::string& per_node) {
    app.add_option("--pes", options.members, pes)
        ->delimiter(',')
        ->check(CLI::Range(2, 1'000'000))
        ->capture_default_str();
    app.add_option("--pes-per-node", options.per_node, per_node)
        ->check(CLI::Range(1, 1'000'000))
        ->capture_default_str();
}

void declare_model(CLI::App& app, SimulationOptions& options) {
    app.add_option("--parameters", options.parameters,
                   "File with the model's parameters; see bench/simulate/model.hpp");
    declare_json(app, options.json);
}

}  // namespace npushmem::perf
