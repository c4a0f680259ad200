// SPDX-License-Identifier: BSD-3-Clause
#include "bench/perf/moe/moe_reports.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <numeric>

#include "bench/chart/chart.hpp"
#include "bench/engine/statistics.hpp"
#include "bench/perf/moe/report_text.hpp"

namespace npushmem::perf {

namespace {

std::string barrier_text(const BarrierLatency& barrier) {
    return spread_text(barrier.seconds, 0) + fmt::format("   {} cores", barrier.cores);
}

std::string plans_section(const CombineResult& r) {
    const bench::Summary gathering = bench::summarise(r.gathering);
    const bench::Summary reordering = bench::summarise(r.reordering);
    return field("sender, plan 2", spread_text(gathering, r.payload_bytes)) +
           field("sender, plan 1", spread_text(reordering, r.payload_bytes)) +
           field("plan 2 to plan 1", fmt::format("{:.2f} times as fast", reordering.median / gathering.median)) +
           field("", "plan 2 gathers rows while it copies them; plan 1 first puts them in order; with equal stores");
}

// Control traffic of all PEs, per collective call.
std::string control_section(const CombineResult& r) {
    const npushmemx_moe_traffic_t& t = r.traffic;
    const double per_call = r.pes / std::max(static_cast<double>(t.calls), 1.0);
    const double bytes = 8.0 * static_cast<double>(t.signals + t.tails + t.heads) * per_call;
    const std::string share = fmt::format("({:.4f} % of the payload)", 100 * bytes / std::max(r.payload_bytes, 1.0));
    if (t.tails == 0)
        return field("control traffic", fmt::format("{} of signals per call {}", bytes_text(bytes), share));
    const auto each = [&](std::uint64_t count) { return static_cast<double>(count) * per_call; };
    return field("control traffic", fmt::format("{} per call {}: {:.1f} tails, {:.1f} heads", bytes_text(bytes), share,
                                                each(t.tails), each(t.heads))) +
           field("", fmt::format("{:.1f} batches per call went across a ring's end; {:.1f} waits for room or for rows",
                                 each(t.splits), each(t.waits)));
}

std::string results_section(const CombineResult& r) {
    const bench::Summary combine = bench::summarise(r.combine);
    const bench::Summary ordinary = bench::summarise(r.ordinary);
    const bench::Summary streaming = bench::summarise(r.streaming);
    const bool streams = streaming.median < ordinary.median;
    const double best = std::min(ordinary.median, streaming.median);
    std::string text =
        fmt::format("Results ({} calls, all PEs beginning together, until the last has ended)\n", r.combine.size());
    text += field("NPU barrier", barrier_text(r.barrier));
    text += field("combine", spread_text(combine, r.payload_bytes));
    text += back_to_back_section(r);
    text += field("memcpy ordinary", spread_text(ordinary, r.payload_bytes));
    text += field("memcpy streaming", spread_text(streaming, r.payload_bytes));
    text += field("ratio",
                  fmt::format("combine takes {:.2f} times the better memcpy ({} stores) of the same bytes by the same "
                              "processes;",
                              combine.median / best, streams ? "streaming" : "ordinary"));
    text += field("", "besides copying every row once, it reads each again to add it up");
    if (!r.quantized_type.empty()) {
        const bench::Summary quantized = bench::summarise(r.quantized);
        text += field((r.quantized_type + " combine").c_str(), spread_text(quantized, r.quantized_bytes));
        text += field("ratio", fmt::format("to the combine of rows of the input type: {:.2f}, quantization included",
                                           quantized.median / combine.median));
    }
    text += control_section(r);
    return text + plans_section(r) + cache_section("x and two buffers", 3 * r.payload_bytes);
}

std::string verification_section(const CombineOptions& options, const CombineResult& r) {
    if (!options.verify) return "not verified (--no-verify)\n";
    return fmt::format(
        "verified: every byte of {:.0f} output rows equal to the reference, in each of {} calls with a payload of its "
        "own{}\n",
        r.tokens, r.verified_calls, options.audit ? "; every slot written exactly once (audit)" : "");
}

// A bar of the samples' median, with a whisker; none without samples.
void add_bar(chart::BarChart& chart, const char* name, const std::vector<double>& seconds) {
    const bench::Summary s = bench::summarise(seconds);
    if (s.count != 0) chart.bars.push_back({name, s.median, s.p10, s.p90});
}

chart::BarChart chart_of(const char* layer, const CombineCase& c, const PayloadResult& result) {
    return {fmt::format("npushmem-perf {}: {} on {} PEs", layer, c.workload.name, result.pes),
            "time of a call",
            "10th to 90th percentile of the calls",
            {},
            time_text};
}

}  // namespace

std::string combine_report(const CombineCase& c, const CombineOptions& options, const CombineResult& result,
                           const std::string& map, const std::string& nics) {
    return fmt::format("npushmem-perf combine: {} on {} PEs, mode {}\n\n", c.workload.name, result.pes, options.mode) +
           workload_section(c, options, result) + "\n" +
           choices_section(copying_back(options, result.copy, false), map, nics) + "\n" + results_section(result) +
           "\n" + verification_section(options, result);
}

std::string combine_csv(const CombineResult& result) {
    std::string csv = csv_header;
    append_samples(csv, "combine", result.combine, result.payload_bytes);
    append_samples(csv, "memcpy_ordinary", result.ordinary, result.payload_bytes);
    append_samples(csv, "memcpy_streaming", result.streaming, result.payload_bytes);
    append_samples(csv, "plan_2_gather", result.gathering, result.payload_bytes);
    append_samples(csv, "plan_1_reorder", result.reordering, result.payload_bytes);
    if (!result.quantized_type.empty())
        append_samples(csv, "combine_quantized", result.quantized, result.quantized_bytes);
    return csv;
}

std::string combine_svg(const CombineCase& c, const CombineResult& result) {
    chart::BarChart chart = chart_of("combine", c, result);
    add_bar(chart, "combine", result.combine);
    add_bar(chart, "memcpy ordinary", result.ordinary);
    add_bar(chart, "memcpy streaming", result.streaming);
    add_bar(chart, "sender, plan 2", result.gathering);
    add_bar(chart, "sender, plan 1", result.reordering);
    return chart::draw(chart);
}

namespace {

std::string results_section(const CombineCase& c, const DispatchResult& r) {
    const bench::Summary dispatch = bench::summarise(r.dispatch);
    const bench::Summary layer = bench::summarise(r.layer);
    const bench::Summary ordinary = bench::summarise(r.ordinary);
    const bench::Summary streaming = bench::summarise(r.streaming);
    const double best = std::min(ordinary.median, streaming.median);
    std::string text =
        fmt::format("Results ({} calls, all PEs beginning together, until the last has ended)\n", r.dispatch.size());
    text += field("dispatch", spread_text(dispatch, r.payload_bytes));
    text += back_to_back_section(r);
    text += field("cached dispatch", spread_text(bench::summarise(r.cached), r.payload_bytes));
    text += field("dispatch, combine", spread_text(layer, 2 * r.payload_bytes));
    text += field("memcpy ordinary", spread_text(ordinary, r.payload_bytes));
    text += field("memcpy streaming", spread_text(streaming, r.payload_bytes));
    text += field("ratio",
                  fmt::format("dispatch takes {:.2f} times the better memcpy ({} stores) of the same bytes by "
                              "the same processes,",
                              dispatch.median / best, streaming.median < ordinary.median ? "streaming" : "ordinary"));
    text +=
        field("", fmt::format("dispatch and combine {:.2f} times that of the bytes of both", layer.median / 2 / best));
    text +=
        field("", "a token stays in a cache while it goes to one expert after another, so less is read than by memcpy");
    const double rows = std::accumulate(r.rows.begin(), r.rows.end(), 0.0);
    const double copied = (r.in_place ? 1 : 3) * r.sent_rows;  // put there; put back and read again
    if (rows > 0)
        text += field("", fmt::format("without caches they read and write {:.2f} times the bytes of two copies",
                                      (rows + copied + 2 * r.tokens) / (4 * rows)));
    if (!r.quantized_type.empty()) {
        const bench::Summary quantizing = bench::summarise(r.quantizing);
        const bench::Summary quantized = bench::summarise(r.quantized);
        text += field((r.quantized_type + " dispatch").c_str(), spread_text(quantizing, r.quantized_bytes));
        text += field(("of " + r.quantized_type + " tokens").c_str(), spread_text(quantized, r.quantized_bytes));
        const double alone = bench::summarise(r.quantization).median;
        text +=
            field("ratio", fmt::format("to the dispatch of {} rows: {:.2f} with the quantization of the tokens, "
                                       "{:.2f} without, {:.2f} for the quantization alone, {}",
                                       moe::name_of(c.workload.type), quantizing.median / dispatch.median,
                                       quantized.median / dispatch.median, alone / dispatch.median, time_text(alone)));
    }
    text +=
        field("CPU time",
              fmt::format("{} of each PE for a dispatch and its combine, back to back; {:.2f} times that of two "
                          "of the cheaper memcpy",
                          time_text(r.layers.processor_seconds), r.layers.processor_seconds / 2 / r.copy_processors));
    text += field("control traffic",
                  fmt::format("{} of counts, slots and signals per dispatch ({:.3f} % of the payload)",
                              bytes_text(r.control_bytes), 100 * r.control_bytes / std::max(r.payload_bytes, 1.0)));
    return text + cache_section("x and two buffers", 3 * r.payload_bytes);
}

std::string verification_section(const CombineOptions& options, const DispatchResult& r) {
    if (!options.verify) return "not verified (--no-verify)\n";
    return fmt::format(
        "verified: every byte of {:.0f} rows and of {:.0f} output rows equal to the reference, in each of "
        "{} layers with tokens of its own{}\n",
        std::accumulate(r.rows.begin(), r.rows.end(), 0.0), r.tokens, r.verified_calls,
        options.audit ? "; every row came exactly once (audit)" : "");
}

}  // namespace

std::string dispatch_report(const CombineCase& c, const CombineOptions& options, const DispatchResult& result,
                            const std::string& map, const std::string& nics) {
    return fmt::format(
               "npushmem-perf dispatch: {} on {} PEs, mode {}, {}\n\n", c.workload.name, result.pes, options.mode,
               options.slots == "fixed" ? "fixed slots" : fmt::format("room for {} rows on each", result.capacity)) +
           workload_section(c, options, result) + "\n" +
           choices_section(copying_there(options, result.copy) + copying_back(options, result.copy, result.in_place),
                           map, nics) +
           "\n" + results_section(c, result) + "\n" + verification_section(options, result);
}

std::string dispatch_csv(const DispatchResult& result) {
    std::string csv = csv_header;
    append_samples(csv, "dispatch", result.dispatch, result.payload_bytes);
    append_samples(csv, "dispatch_cached", result.cached, result.payload_bytes);
    append_samples(csv, "dispatch_combine", result.layer, 2 * result.payload_bytes);
    if (!result.quantized_type.empty()) {
        append_samples(csv, "dispatch_quantizing", result.quantizing, result.quantized_bytes);
        append_samples(csv, "dispatch_quantized", result.quantized, result.quantized_bytes);
        append_samples(csv, "quantization", result.quantization, result.quantized_bytes);
    }
    append_samples(csv, "memcpy_ordinary", result.ordinary, result.payload_bytes);
    append_samples(csv, "memcpy_streaming", result.streaming, result.payload_bytes);
    return csv;
}

std::string dispatch_svg(const CombineCase& c, const DispatchResult& result) {
    chart::BarChart chart = chart_of("dispatch", c, result);
    add_bar(chart, "dispatch", result.dispatch);
    add_bar(chart, "dispatch, combine", result.layer);
    add_bar(chart, "memcpy ordinary", result.ordinary);
    add_bar(chart, "memcpy streaming", result.streaming);
    return chart::draw(chart);
}

}  // namespace npushmem::perf
