#include "bench/perf/statistics.hpp"

#include <algorithm>
#include <cmath>

namespace npushmem::perf {
namespace {

double at_share(const std::vector<double>& sorted, double share) {
    const double position = share * static_cast<double>(sorted.size() - 1);
    const auto below = static_cast<std::size_t>(std::floor(position));
    const std::size_t above = std::min(below + 1, sorted.size() - 1);
    return sorted[below] + (position - std::floor(position)) * (sorted[above] - sorted[below]);
}

}  // namespace

Spread spread_of(std::vector<double> samples) {
    if (samples.empty()) return {};
    std::ranges::sort(samples);
    return {at_share(samples, 0.5), at_share(samples, 0.1), at_share(samples, 0.9)};
}

}  // namespace npushmem::perf
