// SPDX-License-Identifier: BSD-3-Clause
#include "bench/perf/moe/report_text.hpp"

#include <fmt/format.h>
#include <unistd.h>

#include <algorithm>
#include <initializer_list>
#include <numeric>
#include <sstream>

#include "npushmem/moe.h"

namespace npushmem::perf {

// Size of this host's last-level cache in bytes, as the processor reports it (a virtual machine may see more than its
// share); 0: unknown.
double last_level_cache();

double last_level_cache() {
    for (const int level : {_SC_LEVEL4_CACHE_SIZE, _SC_LEVEL3_CACHE_SIZE, _SC_LEVEL2_CACHE_SIZE}) {
        if (const long bytes = sysconf(level); bytes > 0) return static_cast<double>(bytes);
    }
    return 0;
}

namespace {

std::string indented(const std::string& text) {
    std::string result;
    std::istringstream lines(text);
    for (std::string line; std::getline(lines, line);) result += line.empty() ? "" : "  " + line + "\n";
    return result.empty() ? "  (nothing said)\n" : result;
}

// The route of rows to PEs whose memory is mapped.
std::string copy_text(const CombineOptions& options, std::int32_t copy, const char* where) {
    const char* how =
        options.copy == "auto" ? " (chosen by row size, payload and cache size; --copy changes it)" : " (as asked)";
    switch (copy) {
        case NPUSHMEMX_MOE_COPY_STAGED:
            return fmt::format("rows go {} through the unified buffer, double buffered{}", where, how);
        case NPUSHMEMX_MOE_COPY_STREAMING:
            return fmt::format("rows go straight {} with streaming stores{}", where, how);
        default: return fmt::format("rows go straight {} with ordinary stores{}", where, how);
    }
}

// The route of the other rows.
constexpr const char* unmapped_rows = "the host puts rows to PEs whose memory is not mapped here, by their transport";

}  // namespace

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
std::string spread_text(const bench::Summary& s, double bytes) {
    std::string text =
        fmt::format("median {:>9}   p10 {:>9}   p90 {:>9}", time_text(s.median), time_text(s.p10), time_text(s.p90));
    return bytes > 0 ? text + fmt::format("   {:6.2f} GB/s", bytes / s.median / 1e9) : text;
}

std::string workload_section(const CombineCase& c, const CombineOptions& options, const PayloadFacts& r) {
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
    if (options.rows == "rank") {
        text += field("rows that travel",
                      fmt::format("{:.0f} each way, one for each token and PE of its experts", r.sent_rows));
    }
    text += field("routing", options.routing_file.empty() ? "made for this run" : options.routing_file);
    if (!c.routing_origin.empty()) text += field("", c.routing_origin.substr(0, c.routing_origin.find(';')));
    for (const std::string& one : c.adjustments) text += field("adjusted", one);
    return text;
}

std::string copying_back(const CombineOptions& options, std::int32_t copy, bool in_place) {
    if (in_place)
        return field("copying back",
                     "none: rows stay in place, where their tokens' PEs read them (chosen by row size; all PEs map all "
                     "memory)");
    if (options.mode == "direct")
        return field("copying back", copy_text(options, copy, "to their slots")) + field("", unmapped_rows);
    const char* chunks = options.mode == "chunked" ? ", 256 tokens of each PE at a time" : "";
    const char* how =
        options.ring == "sender" ? "from which that takes them to their slots" : "which puts them into their slots";
    return field("copying back", fmt::format("rows go through a ring to each PE, {}{}", how, chunks));
}

std::string copying_there(const CombineOptions& options, std::int32_t copy) {
    return field("copying there", copy_text(options, copy, "to their experts")) + field("", unmapped_rows);
}

std::string choices_section(const std::string& copying, const std::string& map, const std::string& nics) {
    return "What was chosen, and why\n" + indented(map) + indented(nics) + copying;
}

std::string back_to_back_section(const PayloadResult& result) {
    const BackToBack& row = result.back_to_back;
    return field("  back to back", fmt::format("mean   {:>9}   per call, nothing between calls   {:6.2f} GB/s",
                                               time_text(row.seconds), result.payload_bytes / row.seconds / 1e9)) +
           field("    processors", fmt::format("mean   {:>9}   of each PE and call; {} for each of {} ranks",
                                               time_text(row.processor_seconds),
                                               time_text(row.processor_seconds / result.pes), result.pes));
}

std::string cache_section(const char* what, double touched) {
    const double cache = last_level_cache();
    if (cache == 0 || touched >= 4 * cache) return "";
    return field("caches",
                 fmt::format("{} are {}, less than 4 times the last-level cache of {} that this host reports:", what,
                             bytes_text(touched), bytes_text(cache))) +
           field("", "these figures are of caches at least in part, those of memcpy as well");
}

void append_samples(std::string& csv, const char* name, const std::vector<double>& seconds, double bytes) {
    for (std::size_t i = 0; i < seconds.size(); ++i)
        csv += fmt::format("{},{},{:.9f},{:.0f}\n", name, i, seconds[i], bytes);
}

std::string difference_text(const PeDifference& d) {
    return fmt::format("WRONG RESULT on PE {}: token {}, column {}: expected {}, seen {}", d.pe, d.where.token,
                       d.where.column, d.where.expected, d.where.seen);
}

}  // namespace npushmem::perf
