// SPDX-License-Identifier: BSD-3-Clause
// Results as a table for a person, and as CSV and JSON for programs.
#pragma once

#include <cstdint>
#include <string>
#include <variant>
#include <vector>

#include "bench/engine/engine.hpp"

namespace npushmem::bench {

struct ReportHead {
    std::string title;    // "put"
    std::string machine;  // what it ran on
    int pes = 1;
    double clock_ns = 0;  // taken off every batch
    EngineSettings settings;
};

std::string text_report(const ReportHead& head, const std::vector<PointResult>& points);
// One line per variant of a point, below a line of names.
std::string csv_report(const ReportHead& head, const std::vector<PointResult>& points);
std::string json_report(const ReportHead& head, const std::vector<PointResult>& points);

// The table of a subcommand that does not measure points.
using ResultCell = std::variant<std::string, double, std::int64_t>;
struct ResultTable {
    std::string title;
    std::vector<std::string> columns;           // with units: "time_us"
    std::vector<std::vector<ResultCell>> rows;  // one cell per column
};

// {"title": ..., "rows": [{<column>: <cell>, ...}, ...]}.
std::string json_report(const ResultTable& table);

// "1.85 ns", "12.3 us", "1.20 s": three significant digits.
std::string format_time(double nanoseconds);

}  // namespace npushmem::bench
