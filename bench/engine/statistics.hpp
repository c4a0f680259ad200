// SPDX-License-Identifier: BSD-3-Clause
// Order statistics: a few disturbed samples hardly change them.
#pragma once

#include <cstddef>
#include <span>
#include <vector>

namespace npushmem::bench {

struct Summary {
    std::size_t count = 0;
    double median = 0;
    double mad = 0;  // median of the distances from the median
    double p10 = 0;
    double p90 = 0;
    double min = 0;
};

// Returns zeros for no samples. Percentiles interpolate between neighbours.
Summary summarise(std::vector<double> samples);

// The value below which `fraction` (0..1) of the samples lie; `sorted` ascending and not empty.
double percentile(std::span<const double> sorted, double fraction);

// sample i of `over` divided by sample i of `under`. Both were measured in immediate succession, so disturbances affect
// both. Pairs with a divisor of 0 are omitted.
std::vector<double> paired_ratios(std::span<const double> over, std::span<const double> under);

}  // namespace npushmem::bench
