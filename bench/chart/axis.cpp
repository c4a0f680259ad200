// SPDX-License-Identifier: BSD-3-Clause
#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cmath>

#include "bench/chart/chart.hpp"

namespace npushmem::chart {
namespace {

constexpr std::array round_digits{1.0, 2.0, 5.0};
constexpr double room = 1.05;       // between a value and the end of a logarithmic axis
constexpr double tolerance = 1e-9;  // relative, for sums and powers of 10

// The round number with this index: ..., 0.5, 1, 2, 5, 10, ...; 0 is 1.
double round_number(int index) {
    const int decade = index >= 0 ? index / 3 : -((2 - index) / 3);
    return round_digits.at(static_cast<std::size_t>(index - 3 * decade)) * std::pow(10.0, decade);
}

// The index of the largest round number that is not above `value`.
int round_index_below(double value) {
    int index = 3 * static_cast<int>(std::floor(std::log10(value))) - 1;
    while (round_number(index + 1) <= value * (1 + tolerance)) ++index;
    return index;
}

int round_index_above(double value) {
    const int below = round_index_below(value);
    return round_number(below) >= value * (1 - tolerance) ? below : below + 1;
}

bool is_positive(double value) { return std::isfinite(value) && value > 0; }

}  // namespace

double Axis::position(double value) const {
    if (logarithmic) return std::log(value / low) / std::log(high / low);
    return (value - low) / (high - low);
}

std::string tick_text(double value) { return fmt::format("{:.10g}", value); }

Axis linear_axis(double max) {
    if (!is_positive(max)) max = 1;
    const double step = round_number(round_index_above(max / 7));
    const double count = std::ceil(max / step - tolerance);
    Axis axis{false, 0, count * step, {}, {}};
    for (double i = 0; i <= count; ++i) axis.ticks.push_back(i * step);
    return axis;
}

Axis logarithmic_axis(double min, double max) {
    if (!is_positive(min)) min = 1;
    if (!is_positive(max)) max = 1;
    const int first = round_index_below(std::min(min, max) / room);
    const int last = round_index_above(std::max(min, max) * room);
    Axis axis{true, round_number(first), round_number(last), {}, {}};
    const bool decades = axis.high >= 100 * axis.low * (1 - tolerance);
    for (int index = first; index <= last; ++index) {
        const bool is_decade = index % 3 == 0;
        (is_decade || !decades ? axis.ticks : axis.minor).push_back(round_number(index));
    }
    return axis;
}

Axis axis_of_values(const std::vector<double>& values) {
    if (values.empty()) return logarithmic_axis(1, 1);
    Axis axis{true, values.front(), values.back(), values, {}};
    if (axis.high <= axis.low) axis.low /= 2;
    return axis;
}

}  // namespace npushmem::chart
