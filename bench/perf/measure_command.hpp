// SPDX-License-Identifier: BSD-3-Clause
// Options and output of all measuring subcommands.
#pragma once

#include <CLI/CLI.hpp>
#include <string>
#include <vector>

#include "bench/engine/engine.hpp"
#include "bench/engine/report.hpp"
#include "npushmem/plugin/status.hpp"

namespace npushmem::perf {

struct MeasureOptions {
    int rounds = 60;
    int batch_us = 200;
    std::string csv;   // files; none if empty
    std::string json;  // "-": standard output, instead of the table

    [[nodiscard]] bench::EngineSettings settings() const;
};

// --rounds, --batch, --csv, --json; the values present are the defaults.
void declare_options(CLI::App& app, MeasureOptions& options);

// Adds --json for a subcommand that prints one table.
void declare_json(CLI::App& app, std::string& json);
// Whether --json replaces the table on standard output.
inline bool is_standard_output(const std::string& json) { return json == "-"; }
// Writes to the file of --json, or to standard output for "-"; does nothing for "".
Status write_json(const std::string& json, const std::string& text);

// Appends the rules of a tuning command to the file of --output, or prints them, unless --json has standard output.
Status deliver_rules(const std::string& rules, const std::string& output, const std::string& json);

// Prints the table and writes the requested files.
Status deliver(const bench::ReportHead& head, const std::vector<bench::PointResult>& points,
               const MeasureOptions& options);

// Name and number of the processors that this process may use.
std::string machine_name();

}  // namespace npushmem::perf
