#include "bench/perf/npu_barrier_table.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <map>

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
    constexpr double width = 640;
    constexpr double height = 400;
    constexpr double margin = 50;
    double slowest = 0;
    int most = 1;
    for (const BarrierRow& row : table.rows) {
        slowest = std::max(slowest, row.*time);
        most = std::max(most, row.pes);
    }
    std::map<std::string, std::string> lines;
    for (const BarrierRow& row : table.rows) {
        lines[row.algorithm] += fmt::format("{:.1f},{:.1f} ", margin + row.pes * (width - 2 * margin) / most,
                                            height - margin - row.*time / slowest * (height - 2 * margin));
    }
    std::string svg = fmt::format(
        "<svg xmlns=\"http://www.w3.org/2000/svg\" width=\"{0}\" height=\"{1}\" "
        "font-family=\"sans-serif\" font-size=\"12\">\n"
        "<text x=\"{2}\" y=\"20\">barrier latency, up to {3:.2f} us, against PEs, up to {4}"
        "</text>\n<path d=\"M{2} {2} V{5} H{6}\" fill=\"none\" stroke=\"black\"/>\n",
        width, height, margin, slowest * 1e6, most, height - margin, width - margin);
    constexpr const char* colours[] = {"#1b6ca8", "#c0392b", "#27864a", "#8e44ad", "#b9770e"};
    std::size_t number = 0;
    for (const auto& [algorithm, points] : lines) {
        const char* colour = colours[number % std::size(colours)];
        svg += fmt::format(
            "<polyline points=\"{}\" fill=\"none\" stroke=\"{}\"/>\n<text x=\"{}\" y=\"{}\" fill=\"{}\">{}"
            "</text>\n",
            points, colour, width - margin, margin + 16 * static_cast<double>(number), colour, algorithm);
        ++number;
    }
    return svg + "</svg>\n";
}

}  // namespace npushmem::perf
