// The report that a person reads, and the samples for a program.
#pragma once

#include <string>

#include "bench/perf/combine_case.hpp"
#include "bench/perf/combine_result.hpp"

namespace npushmem::perf {

// map, nics: what the runtime says of its choices.
std::string combine_report(const CombineCase& c, const CombineOptions& options, const CombineResult& result,
                           const std::string& map, const std::string& nics);

// One line per sample: measurement, iteration, seconds, bytes.
std::string combine_csv(const CombineResult& result);

// The medians as bars.
std::string combine_svg(const CombineCase& c, const CombineResult& result);

}  // namespace npushmem::perf
