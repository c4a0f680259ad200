// SPDX-License-Identifier: BSD-3-Clause
// Results of the combine and dispatch measurements, and their reports. A result is the same on every PE.
#pragma once

#include <string>
#include <vector>

#include "bench/perf/barrier/npu_barrier.hpp"
#include "bench/perf/moe/combine_case.hpp"
#include "bench/perf/moe/payload_run.hpp"
#include "npushmem/moe.h"

namespace npushmem::perf {

struct CombineResult : PayloadResult {
    npushmemx_moe_traffic_t traffic{};  // sums over all PEs, also of `calls`
    BarrierLatency barrier;
    std::vector<double> combine;     // seconds per call, after a barrier before each
    std::vector<double> gathering;   // plan 2: rows packed per rank while they are copied
    std::vector<double> reordering;  // plan 1: rows put in order first, then copied
    std::string quantized_type;      // empty: none was measured
    double quantized_bytes = 0;      // as payload_bytes
    std::vector<double> quantized;   // seconds per call in which rows of this type return
};

struct DispatchResult : PayloadResult {
    std::vector<double> dispatch;      // seconds per call, after a barrier before each
    std::vector<double> cached;        // seconds per dispatch by the layout of another one
    std::vector<double> layer;         // a dispatch and its combine
    BackToBack layers;                 // the same, without a barrier
    std::string quantized_type;        // empty: none was measured
    double quantized_bytes = 0;        // as payload_bytes
    std::vector<double> quantizing;    // seconds per dispatch that quantizes the tokens
    std::vector<double> quantized;     // of tokens that are quantized
    std::vector<double> quantization;  // of the tokens alone
    double control_bytes = 0;          // counts, slots and signals of a dispatch, by all PEs
    std::int64_t capacity = 0;
    bool in_place = false;  // the combine leaves all rows in place
};

// The report for a reader. map, nics: the runtime's description of its choices.
std::string combine_report(const CombineCase& c, const CombineOptions& options, const CombineResult& result,
                           const std::string& map, const std::string& nics);

// CSV with one line per sample: measurement, iteration, seconds, bytes.
std::string combine_csv(const CombineResult& result);

// SVG with the medians as bars.
std::string combine_svg(const CombineCase& c, const CombineResult& result);

// The report for a reader. map, nics: the runtime's description of its choices.
std::string dispatch_report(const CombineCase& c, const CombineOptions& options, const DispatchResult& result,
                            const std::string& map, const std::string& nics);
// CSV with one line per sample: measurement, iteration, seconds, bytes.
std::string dispatch_csv(const DispatchResult& result);
// SVG with the medians as bars.
std::string dispatch_svg(const CombineCase& c, const DispatchResult& result);

}  // namespace npushmem::perf
