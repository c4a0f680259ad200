// Order statistics of repeated measurements, and bar charts of them.
#pragma once

#include <string>
#include <vector>

namespace npushmem::perf {

struct Spread {
    double median = 0;
    double p10 = 0;
    double p90 = 0;
};

// Accepts any number of samples; returns zeros for none. Percentiles interpolate between neighbours.
Spread spread_of(std::vector<double> samples);

// One bar of a chart.

struct Bar {
    std::string label;
    Spread seconds;  // the bar ends at the median; a thin line goes from the 10th to the 90th percentile
};

// Returns an SVG document with one bar per row. Omits bars without samples.
std::string bars_svg(const std::string& title, const std::vector<Bar>& bars);

}  // namespace npushmem::perf
