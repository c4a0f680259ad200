// SPDX-License-Identifier: BSD-3-Clause
// The results of npushmem-perf npu-barrier as text and as a chart.
#include <fmt/format.h>

#include <algorithm>
#include <map>

#include "bench/chart/chart.hpp"
#include "bench/perf/barrier/npu_barrier.hpp"

namespace npushmem::perf {

namespace {

using BySize = std::map<int, std::vector<const BarrierRow*>>;

BySize by_size(const BarrierTable& table) {
    BySize sizes;
    for (const BarrierRow& row : table.rows) sizes[row.pes].push_back(&row);
    return sizes;
}

const BarrierRow& fastest(const std::vector<const BarrierRow*>& rows, BarrierTime time) {
    return **std::ranges::min_element(rows, {}, [time](const BarrierRow* row) { return row->*time; });
}

std::string crossovers(const BySize& sizes, BarrierTime time, const char* name) {
    std::string text;
    std::string last;
    for (const auto& [pes, rows] : sizes) {
        const std::string& now = fastest(rows, time).algorithm;
        if (now != last) text += fmt::format("{}: from {} PEs on, {} is the fastest\n", name, pes, now);
        last = now;
    }
    return text;
}

}  // namespace

std::string barrier_table_text(const BarrierTable& table) {
    std::string text = fmt::format("{:>5} {:>10} {:>12} {:>12} {:>14} {:>13}\n", "PEs", "barrier", "latency/us",
                                   "virtual/us", "remote writes", "remote reads");
    const BySize sizes = by_size(table);
    for (const auto& [pes, rows] : sizes) {
        for (const BarrierRow* row : rows) {
            text +=
                fmt::format("{:>5} {:>10} {:>12.2f} {:>12.2f} {:>14} {:>13}{}{}\n", pes, row->algorithm,
                            row->seconds * 1e6, row->virtual_seconds * 1e6, row->traffic.remote_writes,
                            row->traffic.remote_reads, row == &fastest(rows, &BarrierRow::seconds) ? "  fastest" : "",
                            row == &fastest(rows, &BarrierRow::virtual_seconds) ? "  fastest in virtual time" : "");
        }
    }
    return text + crossovers(sizes, &BarrierRow::seconds, "real time") +
           crossovers(sizes, &BarrierRow::virtual_seconds, "virtual time");
}

std::string barrier_table_svg(const BarrierTable& table, BarrierTime time) {
    const bool real = time == &BarrierRow::seconds;
    chart::CurveChart chart{
        .title = real ? "Latency of the NPU's barriers" : "Latency of the NPU's barriers, in virtual time",
        .x_title = "number of PEs",
        .y_title = real ? "latency of a barrier (µs)" : "virtual latency of a barrier (µs)",
        .curves = {}};
    for (const BarrierRow& row : table.rows) {
        auto curve = std::ranges::find(chart.curves, row.algorithm, &chart::Curve::name);
        if (curve == chart.curves.end()) curve = chart.curves.insert(curve, chart::Curve{row.algorithm, {}});
        if (row.*time > 0) curve->points.push_back({static_cast<double>(row.pes), row.*time * 1e6});
    }
    return chart::draw(chart);
}

}  // namespace npushmem::perf
