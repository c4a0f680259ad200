// Parts of the reports of MoE layers.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "bench/perf/combine_case.hpp"
#include "bench/perf/payload_run.hpp"
#include "bench/perf/statistics.hpp"

namespace npushmem::perf {

// A line: name, value.
std::string field(const char* name, const std::string& value);
std::string time_text(double seconds);
std::string bytes_text(double bytes);
// "median 9.21 ms   p10 8.90 ms   p90 11.02 ms   12.8 GB/s"; no bandwidth for 0 bytes.
std::string spread_text(const Spread& s, double bytes);

std::string workload_section(const CombineCase& c, const CombineOptions& options, const PayloadFacts& facts);
// How rows are copied, from x to their tokens and from the tokens to x. copy: NPUSHMEMX_MOE_COPY_...
std::string copying_back(const CombineOptions& options, std::int32_t copy);
std::string copying_there(const CombineOptions& options, std::int32_t copy);
// map, nics: what the runtime says of its choices.
std::string choices_section(const std::string& copying, const std::string& map, const std::string& nics);
// Calls in a row: their time, and what each rank costs a PE of it.
std::string back_to_back_section(const PayloadResult& result);
// A baseline whose buffers fit the cache is not one of memory, and must say so. `touched`: their bytes.
std::string cache_section(const char* what, double touched);

// Why the run failed: PE, token, column, expected, seen.
std::string difference_text(const PeDifference& difference);

// A CSV of samples: its first line, and a line per sample.
constexpr const char* csv_header = "measurement,iteration,seconds,bytes\n";
void append_samples(std::string& csv, const char* name, const std::vector<double>& seconds, double bytes);

}  // namespace npushmem::perf
