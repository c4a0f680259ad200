// SPDX-License-Identifier: BSD-3-Clause
#include <fmt/format.h>

#include <algorithm>
#include <array>

#include "bench/chart/chart.hpp"

namespace npushmem::chart {
namespace {

using svg::Svg;
using svg::text_width;

constexpr double side_margin = 12;
constexpr double axis_width = 480;
constexpr double bar_height = 20;
constexpr double bar_step = 32;
constexpr double bars_top = 66;  // below the title and the legend
constexpr std::string_view bar_colour = "#88aacc";
constexpr std::string_view whisker_colour = "#222";
constexpr double max_whisker = 1.5;  // the axis ends at so many times the largest median at most
constexpr svg::TextStyle small_text{.anchor = "start"};
constexpr svg::TextStyle name_text{.size = 12, .anchor = "end"};
constexpr svg::TextStyle value_text{.size = 12, .anchor = "start"};

struct Unit {
    const char* name;
    double seconds;
};

// The largest unit of which the axis has at least one.
Unit unit_for(double seconds) {
    for (const Unit unit : {Unit{"s", 1}, Unit{"ms", 1e-3}, Unit{"µs", 1e-6}})
        if (seconds >= unit.seconds) return unit;
    return {"ns", 1e-9};
}

void draw_whisker(Svg& svg, double left, double right, double y, bool arrow) {
    svg.line({{left, y - 5}, {left, y + 5}}, whisker_colour, 1.4);
    svg.line({{left, y}, {right, y}}, whisker_colour, 1.4);
    if (arrow)
        svg.line({{right - 7, y - 5}, {right, y}, {right - 7, y + 5}}, whisker_colour, 1.4);
    else
        svg.line({{right, y - 5}, {right, y + 5}}, whisker_colour, 1.4);
}

class BarDrawing {
public:
    explicit BarDrawing(const BarChart& chart) : chart_(chart), svg_(chart.title) {
        double median = 0;
        double high = 0;
        for (const Bar& bar : chart.bars) {
            median = std::max(median, bar.median);
            high = std::max(high, bar.high);
            left_ = std::max(left_, side_margin + text_width(bar.name, name_text) + 8);
        }
        const double shown = std::min(high, max_whisker * median);
        unit_ = unit_for(shown);
        axis_ = linear_axis(shown / unit_.seconds);
    }

    std::string run() {
        svg_.text({side_margin, 22}, chart_.title, {.size = 14, .anchor = "start", .bold = true});
        right_ = std::max(left_ + axis_width + 16, side_margin + text_width(chart_.title, {.size = 14, .bold = true}));
        draw_legend();
        const double bottom = bars_top + bar_step * static_cast<double>(chart_.bars.size());
        draw_axis(bottom);
        double y = bars_top + (bar_step - bar_height) / 2;
        for (const Bar& bar : chart_.bars) {
            draw_bar(bar, y);
            y += bar_step;
        }
        return svg_.document(right_ + side_margin, bottom + 46 + side_margin);
    }

private:
    [[nodiscard]] double x_of(double seconds) const {
        return left_ + axis_.position(seconds / unit_.seconds) * axis_width;
    }
    [[nodiscard]] bool is_beyond(double seconds) const { return seconds / unit_.seconds > axis_.high * (1 + 1e-9); }

    void draw_axis(double bottom) {
        for (const double tick : axis_.ticks) {
            const double x = left_ + axis_.position(tick) * axis_width;
            svg_.line({{x, bars_top}, {x, bottom + 5}}, "#dddddd", 1);
            svg_.text({x, bottom + 18}, tick_text(tick));
        }
        svg_.line({{left_, bars_top}, {left_, bottom}, {left_ + axis_width, bottom}}, "#444", 1);
        svg_.text({left_ + axis_width / 2, bottom + 40}, fmt::format("{} ({})", chart_.quantity, unit_.name),
                  {.size = 12});
    }

    void draw_bar(const Bar& bar, double y) {
        const double middle = y + bar_height / 2;
        const bool beyond = is_beyond(bar.high);
        const std::string value =
            chart_.text(bar.median) + (beyond ? fmt::format(" (to {})", chart_.text(bar.high)) : "");
        svg_.text({left_ - 8, middle + 4}, bar.name, name_text);
        svg_.rect({left_, y, x_of(bar.median) - left_, bar_height}, bar_colour, "none",
                  fmt::format("{}: median {}, {}: {} to {}", bar.name, chart_.text(bar.median), chart_.whisker_meaning,
                              chart_.text(bar.low), chart_.text(bar.high)),
                  0);
        const double end = left_ + axis_width;
        draw_whisker(svg_, std::min(x_of(bar.low), end), beyond ? end + 8 : x_of(bar.high), middle, beyond);
        svg_.text({end + 16, middle + 4}, value, value_text);
        right_ = std::max(right_, end + 16 + text_width(value, value_text));
    }

    void draw_legend() {
        constexpr double y = 44;
        double x = side_margin;
        const auto text = [&](const std::string& what) {
            svg_.text({x + 34, y + 4}, what, small_text);
            x += 34 + text_width(what, small_text) + 18;
            right_ = std::max(right_, x - 18);
        };
        svg_.rect({x, y - 6, 26, 12}, bar_colour, "none", {}, 0);
        text("bar: median");
        draw_whisker(svg_, x + 1, x + 25, y, false);
        text("whiskers: " + chart_.whisker_meaning);
        if (std::ranges::none_of(chart_.bars, [this](const Bar& bar) { return is_beyond(bar.high); })) return;
        draw_whisker(svg_, x + 1, x + 25, y, true);
        text("beyond the axis (end in brackets)");
    }

    const BarChart& chart_;
    Svg svg_;
    Axis axis_;
    Unit unit_{};
    double left_ = 60;  // of the axis
    double right_ = 0;  // of what has been drawn
};

}  // namespace

std::string draw(const BarChart& chart) { return BarDrawing(chart).run(); }

}  // namespace npushmem::chart
