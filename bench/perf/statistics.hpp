// Order statistics of repeated measurements.
#pragma once

#include <vector>

namespace npushmem::perf {

struct Spread {
    double median = 0;
    double p10 = 0;
    double p90 = 0;
};

// Of any number of samples; all zero for none. Percentiles interpolate between neighbours.
Spread spread_of(std::vector<double> samples);

}  // namespace npushmem::perf
