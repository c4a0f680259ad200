#include "bench/perf/combine_report.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <numeric>
#include <sstream>

#include "bench/perf/last_level_cache.hpp"

namespace npushmem::perf {
namespace {

std::string indented(const std::string& text) {
    std::string result;
    std::istringstream lines(text);
    for (std::string line; std::getline(lines, line);) result += line.empty() ? "" : "  " + line + "\n";
    return result.empty() ? "  (nothing said)\n" : result;
}

std::string field(const char* name, const std::string& value) { return fmt::format("  {:<18} {}\n", name, value); }

std::string time_text(double seconds) {
    if (seconds < 1e-6) return fmt::format("{:.0f} ns", seconds * 1e9);
    if (seconds < 1e-3) return fmt::format("{:.2f} µs", seconds * 1e6);
    return fmt::format("{:.2f} ms", seconds * 1e3);
}

std::string bytes_text(double bytes) {
    if (bytes < 1e4) return fmt::format("{:.0f} bytes", bytes);
    return bytes < 1e6 ? fmt::format("{:.1f} KB", bytes / 1e3) : fmt::format("{:.1f} MB", bytes / 1e6);
}

// "median 9.21 ms   p10 8.90 ms   p90 11.02 ms   12.8 GB/s"; no bandwidth for 0 bytes.
std::string spread_text(const Spread& s, double bytes) {
    std::string text =
        fmt::format("median {:>9}   p10 {:>9}   p90 {:>9}", time_text(s.median), time_text(s.p10), time_text(s.p90));
    return bytes > 0 ? text + fmt::format("   {:6.2f} GB/s", bytes / s.median / 1e9) : text;
}

std::string barrier_text(const BarrierLatency& barrier) {
    if (barrier.cores == 0) return "not measured: kernels need every PE's memory mapped, and here some is not";
    return spread_text(barrier.seconds, 0) + fmt::format("   {} cores", barrier.cores);
}

std::string copy_text(std::int32_t copy, bool automatic) {
    const char* how = automatic ? " (chosen by row size, payload and cache size; --copy changes it)" : " (as asked)";
    switch (copy) {
        case NPUSHMEMX_MOE_COPY_STAGED: return std::string("rows go through the unified buffer, double buffered") + how;
        case NPUSHMEMX_MOE_COPY_STREAMING:
            return std::string("rows go straight to their slots with streaming stores") + how;
        default: return std::string("rows go straight to their slots with ordinary stores") + how;
    }
}

std::string workload_part(const CombineCase& c, const CombineOptions& options, const CombineResult& r) {
    const Workload& w = c.workload;
    const double mean = r.payload_bytes / r.pes;
    const double hottest = *std::ranges::max_element(r.rows) * static_cast<double>(c.row_bytes());
    std::string text = "Workload\n";
    text += field("layer", fmt::format("{} experts, top-{}, rows of {} {} ({} bytes)", w.experts, w.top_k, w.hidden,
                                       name_of(w.type), c.row_bytes()));
    text += field("tokens", fmt::format("{:.0f} on {} PEs, at most {} on one", r.tokens, r.pes, w.tokens));
    text += field("payload per call",
                  fmt::format("{} in {:.0f} rows; mean per PE {}, hottest {} ({:.1f} times)",
                              bytes_text(r.payload_bytes), std::accumulate(r.rows.begin(), r.rows.end(), 0.0),
                              bytes_text(mean), bytes_text(hottest), mean > 0 ? hottest / mean : 0));
    text += field("routing", options.routing_file.empty() ? "made for this run" : options.routing_file);
    if (!c.routing_origin.empty()) text += field("", c.routing_origin.substr(0, c.routing_origin.find(';')));
    for (const std::string& note : c.notes) text += field("note", note);
    return text;
}

std::string choices_part(const CombineOptions& options, const CombineResult& r, const std::string& map,
                         const std::string& nics) {
    std::string text = "What was chosen, and why\n" + indented(map) + indented(nics);
    text += field("copying", copy_text(r.copy, options.copy == "auto"));
    return text;
}

// A baseline whose buffers fit the cache is not one of memory, and must say so.
std::string cache_part(const CombineResult& r) {
    const double cache = last_level_cache();
    const double touched = 3 * r.payload_bytes;
    if (cache == 0 || touched >= 4 * cache) return "";
    return field("caches",
                 fmt::format("x and two buffers are {}, less than 4 times the last-level cache of {} that this host "
                             "reports:",
                             bytes_text(touched), bytes_text(cache))) +
           field("", "these figures are of caches at least in part, for memcpy as for the combine");
}

std::string results_part(const CombineResult& r) {
    const Spread combine = spread_of(r.combine);
    const Spread ordinary = spread_of(r.ordinary);
    const Spread streaming = spread_of(r.streaming);
    const bool streams = streaming.median < ordinary.median;
    const double best = std::min(ordinary.median, streaming.median);
    std::string text =
        fmt::format("Results ({} calls, all PEs beginning together, until the last has ended)\n", r.combine.size());
    text += field("NPU barrier", barrier_text(r.barrier));
    text += field("combine", spread_text(combine, r.payload_bytes));
    text += field("  in a row", fmt::format("mean   {:>9}   per call, nothing between calls", time_text(r.in_a_row)) +
                                    fmt::format("   {:6.2f} GB/s", r.payload_bytes / r.in_a_row / 1e9));
    text += field("memcpy ordinary", spread_text(ordinary, r.payload_bytes));
    text += field("memcpy streaming", spread_text(streaming, r.payload_bytes));
    text += field("ratio",
                  fmt::format("combine takes {:.2f} times the better memcpy ({} stores) of the same bytes by the same "
                              "processes;",
                              combine.median / best, streams ? "streaming" : "ordinary"));
    text += field("", "besides copying every row once, it reads each again to add it up");
    return text + cache_part(r);
}

std::string verdict_part(const CombineOptions& options, const CombineResult& r) {
    if (!options.verify) return "not verified (--no-verify)\n";
    return fmt::format(
        "verified: every byte of {:.0f} output rows equal to the reference, in each of {} calls with a payload of its "
        "own{}\n",
        r.tokens, r.verified_calls, options.audit ? "; every slot written exactly once (audit)" : "");
}

void append_samples(std::string& csv, const char* name, const std::vector<double>& seconds, double bytes) {
    for (std::size_t i = 0; i < seconds.size(); ++i)
        csv += fmt::format("{},{},{:.9f},{:.0f}\n", name, i, seconds[i], bytes);
}

}  // namespace

std::string combine_report(const CombineCase& c, const CombineOptions& options, const CombineResult& result,
                           const std::string& map, const std::string& nics) {
    return fmt::format("npushmem-perf combine: {} on {} PEs, mode {}\n\n", c.workload.name, result.pes, options.mode) +
           workload_part(c, options, result) + "\n" + choices_part(options, result, map, nics) + "\n" +
           results_part(result) + "\n" + verdict_part(options, result);
}

std::string combine_csv(const CombineResult& result) {
    std::string csv = "measurement,iteration,seconds,bytes\n";
    append_samples(csv, "combine", result.combine, result.payload_bytes);
    append_samples(csv, "memcpy_ordinary", result.ordinary, result.payload_bytes);
    append_samples(csv, "memcpy_streaming", result.streaming, result.payload_bytes);
    return csv;
}

std::string difference_text(const PeDifference& d) {
    return fmt::format("WRONG RESULT on PE {}: token {}, column {}: expected {}, seen {}", d.pe, d.where.token,
                       d.where.column, d.where.expected, d.where.seen);
}

}  // namespace npushmem::perf
