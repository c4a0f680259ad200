// The report of a dispatch that a person reads, and the samples for a program.
#pragma once

#include <string>

#include "bench/perf/dispatch_run.hpp"

namespace npushmem::perf {

// map, nics: what the runtime says of its choices.
std::string dispatch_report(const CombineCase& c, const CombineOptions& options, const DispatchResult& result,
                            const std::string& map, const std::string& nics);
// One line per sample: measurement, iteration, seconds, bytes.
std::string dispatch_csv(const DispatchResult& result);
// The medians as bars.
std::string dispatch_svg(const CombineCase& c, const DispatchResult& result);

}  // namespace npushmem::perf
