// Times as bars, one under the other.
#pragma once

#include <string>
#include <vector>

#include "bench/perf/statistics.hpp"

namespace npushmem::perf {

struct Bar {
    std::string label;
    Spread seconds;  // the bar ends at the median; a thin line goes from the 10th to the 90th percentile
};

// An SVG document. Bars without samples are left out.
std::string bars_svg(const std::string& title, const std::vector<Bar>& bars);

}  // namespace npushmem::perf
