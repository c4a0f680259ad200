// SPDX-License-Identifier: BSD-3-Clause
// Parts of the reports of MoE layers.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "bench/engine/statistics.hpp"
#include "bench/perf/moe/combine_case.hpp"
#include "bench/perf/moe/payload_run.hpp"

namespace npushmem::perf {

// A line: name, value.
std::string field(const char* name, const std::string& value);
std::string time_text(double seconds);
std::string bytes_text(double bytes);
// "median 9.21 ms   p10 8.90 ms   p90 11.02 ms   12.8 GB/s"; no bandwidth for 0 bytes.
std::string spread_text(const bench::Summary& s, double bytes);

std::string workload_section(const CombineCase& c, const CombineOptions& options, const PayloadFacts& facts);
// How rows are copied, from x to their tokens and from the tokens to x. copy: NPUSHMEMX_MOE_COPY_... `in_place`: they
// are not copied back.
std::string copying_back(const CombineOptions& options, std::int32_t copy, bool in_place);
std::string copying_there(const CombineOptions& options, std::int32_t copy);
// map, nics: the runtime's description of its choices.
std::string choices_section(const std::string& copying, const std::string& map, const std::string& nics);
// Back-to-back calls: their time, and the CPU time of a PE per rank.
std::string back_to_back_section(const PayloadResult& result);
// A note if the baseline's buffers fit into the cache, because it then does not measure memory. `touched`: size of the
// buffers.
std::string cache_section(const char* what, double touched);

// The error of a wrong result: PE, token, column, expected, seen.
std::string difference_text(const PeDifference& difference);

// A CSV of samples: its first line, and a line per sample.
constexpr const char* csv_header = "measurement,iteration,seconds,bytes\n";
void append_samples(std::string& csv, const char* name, const std::vector<double>& seconds, double bytes);

}  // namespace npushmem::perf
