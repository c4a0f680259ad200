// SPDX-License-Identifier: BSD-3-Clause
#include "bench/perf/barrier/npu_barrier.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <chrono>
#include <map>
#include <span>

#include "core/tools/info/svg.hpp"
#include "npushmem/npu/barrier.hpp"
#include "npushmem/npu/device.hpp"
#include "npushmem/npu/launch.hpp"

namespace npushmem::perf {

namespace {

using Clock = std::chrono::steady_clock;

void barriers(npu::Core& core, int pes, npu::BarrierState* state, int count, Clock::time_point* stamps) {
    const npu::TeamView world{0, 1, pes};
    for (int i = 0; i < count; ++i) {
        npu::barrier_v3(core, world, state);
        if (core.index() == 0) stamps[i] = Clock::now();
    }
}

// The number of cores that can poll at the same time, in whole blocks.
int blocks_for(int pes, const npu::DeviceConfig& device) {
    const int pollers = std::min(pes, npu::barrier_v3_pollers);
    return std::clamp((pollers + device.vector_cores - 1) / device.vector_cores, 1, device.blocks);
}

Status run_barriers(const Job& job, npu::BarrierState* state, int blocks, std::vector<Clock::time_point>& stamps) {
    npu::Stream& stream = npu::device().default_stream();
    npu::LaunchConfig config(blocks);
    config.name = "barrier latency";
    const int count = static_cast<int>(stamps.size());
    if (Status s = npu::launch(stream, config, barriers, job.pes(), state, count, stamps.data()); !s.ok()) return s;
    return stream.synchronize();
}

std::vector<double> gaps(std::span<const Clock::time_point> stamps) {
    std::vector<double> result;
    for (std::size_t i = 1; i < stamps.size(); ++i) {
        result.push_back(std::chrono::duration<double>(stamps[i] - stamps[i - 1]).count());
    }
    return result;
}

}  // namespace

Result<BarrierLatency> npu_barrier_latency(const Job& job, int warmup, int iterations) {
    auto state = make_symmetric<npu::BarrierState>(1);
    if (!state.ok()) return state.status();
    const npu::DeviceConfig& device = npu::device().config();
    const int blocks = blocks_for(job.pes(), device);
    std::vector<Clock::time_point> stamps(static_cast<std::size_t>(warmup + iterations + 1));
    if (Status s = run_barriers(job, state.value().get(), blocks, stamps); !s.ok()) return s;
    return BarrierLatency{bench::summarise(gaps(std::span(stamps).subspan(static_cast<std::size_t>(warmup)))),
                          blocks * device.vector_cores};
}

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
    constexpr info::Rect area{50, 50, 540, 300};
    double slowest = 1e-12;
    int max_pes = 1;
    for (const BarrierRow& row : table.rows) {
        slowest = std::max(slowest, row.*time);
        max_pes = std::max(max_pes, row.pes);
    }
    std::map<std::string, std::vector<info::Point>> lines;
    for (const BarrierRow& row : table.rows) {
        lines[row.algorithm].push_back(
            {area.x + row.pes * area.width / max_pes, area.y + (1 - row.*time / slowest) * area.height});
    }
    const std::string title =
        fmt::format("barrier latency, up to {:.2f} us, against PEs, up to {}", slowest * 1e6, max_pes);
    info::Svg svg(title);
    svg.text({area.x, 20}, title, {.size = 12, .anchor = "start"});
    svg.line({{area.x, area.y}, {area.x, area.y + area.height}, {area.x + area.width, area.y + area.height}}, "black",
             1);
    constexpr const char* colours[] = {"#1b6ca8", "#c0392b", "#27864a", "#8e44ad", "#b9770e"};
    std::size_t number = 0;
    for (const auto& [algorithm, points] : lines) {
        const char* colour = colours[number % std::size(colours)];
        svg.line(points, colour, 1, algorithm);
        svg.text({area.x + area.width, area.y + 16 * static_cast<double>(number)}, algorithm,
                 {.size = 12, .colour = colour, .anchor = "start"});
        ++number;
    }
    return svg.document(640, 400);
}

}  // namespace npushmem::perf
