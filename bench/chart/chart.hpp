// SPDX-License-Identifier: BSD-3-Clause
// Charts in the SVG format: curves over logarithmic axes, and bars with whiskers. Lengths are pixels.
#pragma once

#include <cstddef>
#include <functional>
#include <string>
#include <string_view>
#include <vector>

#include "core/base/svg.hpp"

namespace npushmem::chart {

// Maps values to positions. `ticks` have labels, `minor` ticks have only lines; both ascend and lie in [low, high].
struct Axis {
    bool logarithmic = false;
    double low = 0;
    double high = 1;
    std::vector<double> ticks;
    std::vector<double> minor;

    // 0 for low, 1 for high.
    [[nodiscard]] double position(double value) const;
};

// From 0 to the round number at or above `max`, with at most eight ticks at multiples of 1, 2 or 5 times a power of 10.
Axis linear_axis(double max);
// From a round number below `min` to one above `max`, so that no value is at an end of the axis. Ticks at the powers of
// 10, or at 1, 2 and 5 times these if the axis has less than two decades. Values that are not positive count as 1.
Axis logarithmic_axis(double min, double max);
// Logarithmic, from the smallest to the largest of `values`, which are its ticks. They are positive and ascend. A
// single value is the upper end.
Axis axis_of_values(const std::vector<double>& values);
// "0.5", "20", "1000000".
std::string tick_text(double value);

enum class Marker { circle, square, triangle, diamond, cross, plus, down, star };
constexpr std::size_t marker_count = 8;

// What distinguishes a curve. Dash and marker together are unique among the first 32 curves, so that greyscale is
// enough.
struct CurveStyle {
    std::string_view colour;
    std::string_view dash;  // as SVG's stroke-dasharray; empty: solid
    Marker marker;
};
CurveStyle style_of_curve(std::size_t index);

struct Curve {
    std::string name;
    std::vector<svg::Point> points;  // x ascends; all values are positive
};

// A ring around a point of a curve.
struct Ring {
    svg::Point at;
    std::string tip;
};

struct CurveChart {
    std::string title;
    std::string x_title;  // with the unit
    std::string y_title;
    std::vector<Curve> curves;
    std::vector<Ring> rings = {};
    std::string ring_meaning = {};
};

// An SVG document. Both axes are logarithmic; the x axis has a tick at each x. A number at the end of each curve is
// that of the legend's entry; curves that coincide share a label. Where curves coincide their markers alternate.
std::string draw(const CurveChart& chart);

struct Bar {
    std::string name;
    double median = 0;
    double low = 0;  // ends of the whisker
    double high = 0;
};

struct BarChart {
    std::string title;
    std::string quantity;                     // of the axis, which adds the unit: "time per call"
    std::string whisker_meaning;              // "10th to 90th percentile"
    std::vector<Bar> bars;                    // in seconds
    std::function<std::string(double)> text;  // of a value in seconds
};

// An SVG document. The axis ends at the longest whisker, but not far above the largest median: a longer whisker ends in
// an arrow, with its end's value beside the median.
std::string draw(const BarChart& chart);

}  // namespace npushmem::chart
