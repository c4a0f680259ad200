// SPDX-License-Identifier: BSD-3-Clause
#include "bench/engine/statistics.hpp"

#include <algorithm>
#include <cmath>

namespace npushmem::bench {
namespace {

constexpr double middle = 0.5;

double median_distance(std::vector<double> samples, double from) {
    for (double& sample : samples) sample = std::abs(sample - from);
    std::sort(samples.begin(), samples.end());
    return percentile(samples, middle);
}

}  // namespace

double percentile(std::span<const double> sorted, double fraction) {
    const double position = fraction * static_cast<double>(sorted.size() - 1);
    const auto below = static_cast<std::size_t>(position);
    const std::size_t above = std::min(below + 1, sorted.size() - 1);
    const double share = position - static_cast<double>(below);
    return sorted[below] * (1 - share) + sorted[above] * share;
}

Summary summarise(std::vector<double> samples) {
    if (samples.empty()) return {};
    std::sort(samples.begin(), samples.end());
    const double median = percentile(samples, middle);
    return {samples.size(),           median,         median_distance(samples, median), percentile(samples, 0.1),
            percentile(samples, 0.9), samples.front()};
}

std::vector<double> paired_ratios(std::span<const double> over, std::span<const double> under) {
    std::vector<double> ratios;
    for (std::size_t i = 0; i < std::min(over.size(), under.size()); ++i) {
        if (under[i] > 0) ratios.push_back(over[i] / under[i]);
    }
    return ratios;
}

}  // namespace npushmem::bench
