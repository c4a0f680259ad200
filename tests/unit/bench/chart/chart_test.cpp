// SPDX-License-Identifier: BSD-3-Clause
#include "bench/chart/chart.hpp"

#include <gmock/gmock.h>

#include <limits>
#include <set>

#include "tests/fakes/svg_elements.hpp"

namespace npushmem::chart {
namespace {

using fakes::SvgPicture;
using ::testing::AllOf;
using ::testing::Contains;
using ::testing::ContainsRegex;
using ::testing::DoubleEq;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;
using ::testing::Not;
using ::testing::Pointwise;

TEST(LinearAxis, HasTicksAtRoundNumbersFromZero) {
    EXPECT_THAT(linear_axis(10).ticks, Pointwise(DoubleEq(), {0.0, 2.0, 4.0, 6.0, 8.0, 10.0}));
    EXPECT_THAT(linear_axis(0.31).ticks, Pointwise(DoubleEq(), {0.0, 0.05, 0.1, 0.15, 0.2, 0.25, 0.3, 0.35}));
    EXPECT_EQ(linear_axis(41).high, 50);
    EXPECT_EQ(linear_axis(41).position(25), 0.5);
}

TEST(LinearAxis, HasFewTicksForEveryMaximum) {
    for (double max = 1e-9; max < 1e12; max *= 1.37) {
        const Axis axis = linear_axis(max);
        EXPECT_GE(axis.high, max * (1 - 1e-9));
        EXPECT_GE(axis.ticks.size(), 4U) << max;
        EXPECT_LE(axis.ticks.size(), 8U) << max;
        EXPECT_EQ(axis.ticks.back(), axis.high);
    }
}

TEST(LogarithmicAxis, HasTicksAtThePowersOfTen) {
    const Axis axis = logarithmic_axis(1.5, 1700);
    EXPECT_THAT(axis.ticks, Pointwise(DoubleEq(), {1.0, 10.0, 100.0, 1000.0}));
    EXPECT_THAT(axis.minor, Pointwise(DoubleEq(), {2.0, 5.0, 20.0, 50.0, 200.0, 500.0, 2000.0}));
    EXPECT_DOUBLE_EQ(axis.position(1), 0);
    EXPECT_DOUBLE_EQ(axis.position(2000), 1);
    EXPECT_DOUBLE_EQ(logarithmic_axis(0.2, 50).position(logarithmic_axis(0.2, 50).high), 1);
}

TEST(LogarithmicAxis, OfLessThanTwoDecadesHasTicksAtOneTwoAndFive) {
    EXPECT_THAT(logarithmic_axis(3, 4).ticks, Pointwise(DoubleEq(), {2.0, 5.0}));
    EXPECT_THAT(logarithmic_axis(0.03, 0.3).ticks, Pointwise(DoubleEq(), {0.02, 0.05, 0.1, 0.2, 0.5}));
    EXPECT_THAT(logarithmic_axis(7, 7).minor, IsEmpty());
}

TEST(LogarithmicAxis, LeavesRoomAroundTheValues) {
    for (double min = 1e-7; min < 1e7; min *= 1.9)
        for (double factor = 1; factor < 1e6; factor *= 3.1) {
            const Axis axis = logarithmic_axis(min, min * factor);
            EXPECT_GT(axis.position(min), 0) << min;
            EXPECT_LT(axis.position(min * factor), 1) << min << " " << factor;
            EXPECT_GE(axis.ticks.size(), 2U) << min << " " << factor;
        }
}

TEST(LogarithmicAxis, CountsOtherValuesAsOne) {
    for (const double value : {0.0, -3.0, std::numeric_limits<double>::quiet_NaN(), HUGE_VAL})
        EXPECT_GT(logarithmic_axis(value, value).high, 1);
}

TEST(AxisOfValues, HasEachValueAsTick) {
    EXPECT_THAT(axis_of_values({2, 8, 32}).ticks, ElementsAre(2, 8, 32));
    EXPECT_DOUBLE_EQ(axis_of_values({2, 8, 32}).position(8), 0.5);
    EXPECT_DOUBLE_EQ(axis_of_values({3}).position(3), 1);
}

TEST(CurveStyle, IsUniqueWithoutColours) {
    std::set<std::pair<std::string_view, Marker>> styles;
    for (std::size_t i = 0; i < 32; ++i) {
        const CurveStyle style = style_of_curve(i);
        EXPECT_TRUE(styles.insert({style.dash, style.marker}).second) << "curve " << i;
        EXPECT_NE(style.colour, style_of_curve(i + 1).colour);
    }
}

// Curves that all coincide, except that one has a single point.
CurveChart seventeen_curves() {
    CurveChart chart{.title = "a <title>", .x_title = "number of PEs", .y_title = "time (µs)", .curves = {}};
    for (int i = 0; i < 17; ++i) {
        Curve curve{"curve_" + std::to_string(i), {}};
        for (double x = 2; x <= (i == 7 ? 2 : 64); x *= 2) curve.points.push_back({x, i < 9 ? x : 3 * x + i});
        chart.curves.push_back(std::move(curve));
    }
    return chart;
}

std::size_t count_with_colour(const SvgPicture& picture, std::string_view colour, std::string_view dash) {
    std::size_t count = 0;
    for (const auto& line : picture.all("polyline"))
        if (line.attribute("stroke") == colour && line.attribute("stroke-dasharray") == dash && line.tip.empty())
            ++count;
    return count;
}

TEST(CurveChart, ShowsEveryCurveInThePlotAndInTheLegend) {
    const CurveChart chart = seventeen_curves();
    const SvgPicture picture = fakes::read_svg(draw(chart));
    for (std::size_t i = 0; i < chart.curves.size(); ++i) {
        const CurveStyle style = style_of_curve(i);
        EXPECT_THAT(picture.texts(), Contains(chart.curves[i].name));
        EXPECT_GE(count_with_colour(picture, style.colour, style.dash), 1U) << "legend of curve " << i;
        std::size_t lines = 0;
        for (const auto& line : picture.all("polyline")) {
            if (line.tip != chart.curves[i].name) continue;
            ++lines;
            EXPECT_EQ(line.attribute("stroke"), style.colour);
            EXPECT_EQ(line.attribute("stroke-dasharray"), style.dash);
        }
        EXPECT_EQ(lines, 1U);
    }
    EXPECT_THAT(picture.texts(), Contains("1, 2, 3, 4, 5, 6, 7, 9")) << "the curves that end at the same point";
    EXPECT_THAT(picture.texts(), Contains("number of PEs"));
    EXPECT_THAT(picture.texts(), Contains("time (µs)"));
    EXPECT_THAT(picture.texts(), Contains("100"));
    fakes::expect_inside_the_view_box(picture);
    fakes::expect_separate_texts(picture);
}

// A circle is the marker of the curves 0, 8 and 16; each is once in the legend.
TEST(CurveChart, EveryCurveHasAMarker) {
    const SvgPicture picture = fakes::read_svg(draw(seventeen_curves()));
    for (const std::size_t curve : {0U, 8U, 16U}) {
        std::size_t count = 0;
        for (const auto& circle : picture.all("circle"))
            if (circle.attribute("stroke") == style_of_curve(curve).colour) ++count;
        EXPECT_GE(count, 2U) << curve;
    }
}

TEST(CurveChart, ExplainsItsRings) {
    CurveChart chart = seventeen_curves();
    EXPECT_THAT(draw(chart), Not(HasSubstr("fastest")));
    chart.rings = {{{4, 4}, "from 4 PEs"}};
    chart.ring_meaning = "fastest";
    EXPECT_THAT(draw(chart), AllOf(HasSubstr("<title>from 4 PEs</title>"), HasSubstr(">fastest<")));
}

TEST(CurveChart, DrawsOneSizeAndNoneAtAll) {
    CurveChart chart{.title = "t", .x_title = "x", .y_title = "y", .curves = {}};
    fakes::expect_inside_the_view_box(fakes::read_svg(draw(chart)));
    for (int i = 0; i < 5; ++i) chart.curves.push_back({"c" + std::to_string(i), {{3, 10 + 0.1 * i}}});
    chart.curves.push_back({"empty", {}});
    const SvgPicture picture = fakes::read_svg(draw(chart));
    fakes::expect_inside_the_view_box(picture);
    fakes::expect_separate_texts(picture);
}

TEST(CurveChart, LeavesOutTickLabelsThatWouldTouch) {
    CurveChart chart{.title = "t", .x_title = "x", .y_title = "y", .curves = {{"c", {}}}};
    for (int x = 100'000; x < 100'060; ++x) chart.curves[0].points.push_back({static_cast<double>(x), 1.0 * x});
    fakes::expect_separate_texts(fakes::read_svg(draw(chart)));
}

BarChart two_bars(double high) {
    return {"bars",
            "time of a call",
            "10th to 90th percentile",
            {{"slow", 4e-6, 3e-6, high}, {"fast", 1e-6, 1e-6, 1e-6}},
            [](double seconds) { return tick_text(seconds * 1e6) + " µs"; }};
}

TEST(BarChart, DrawsMediansToScaleAndExplainsTheWhiskers) {
    const SvgPicture picture = fakes::read_svg(draw(two_bars(5e-6)));
    const auto bars = picture.all("rect");
    ASSERT_EQ(bars.size(), 3U) << "one is in the legend";
    EXPECT_NEAR(bars[1].number("width") / bars[2].number("width"), 4, 0.01);
    EXPECT_EQ(bars[1].tip, "slow: median 4 µs, 10th to 90th percentile: 3 µs to 5 µs");
    EXPECT_THAT(picture.texts(), AllOf(Contains("bar: median"), Contains("whiskers: 10th to 90th percentile"),
                                       Contains("time of a call (µs)"), Contains("4 µs"), Contains("5")));
    EXPECT_THAT(picture.texts(), Not(Contains(ContainsRegex("beyond the axis"))));
    fakes::expect_inside_the_view_box(picture);
    fakes::expect_separate_texts(picture);
}

TEST(BarChart, ALongWhiskerDoesNotHideTheBars) {
    const SvgPicture picture = fakes::read_svg(draw(two_bars(1)));
    EXPECT_GT(picture.all("rect").at(1).number("width"), 200);
    EXPECT_THAT(picture.texts(), Contains("4 µs (to 1000000 µs)"));
    EXPECT_THAT(picture.texts(), Contains(ContainsRegex("beyond the axis")));
    fakes::expect_inside_the_view_box(picture);
    fakes::expect_separate_texts(picture);
}

TEST(BarChart, DrawsNoBarsAndZeros) {
    BarChart chart = two_bars(1);
    chart.bars = {{"zero", 0, 0, 0}};
    fakes::expect_inside_the_view_box(fakes::read_svg(draw(chart)));
    chart.bars.clear();
    fakes::expect_inside_the_view_box(fakes::read_svg(draw(chart)));
}

}  // namespace
}  // namespace npushmem::chart
