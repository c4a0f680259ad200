// SPDX-License-Identifier: BSD-3-Clause
#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <numeric>
#include <set>

#include "bench/chart/chart.hpp"

namespace npushmem::chart {
namespace {

using svg::Point;
using svg::Rect;
using svg::Svg;
using svg::text_width;

constexpr Rect area{76, 44, 744, 456};
constexpr double inset = 16;  // between the frame and the first and last x
constexpr double margin = 12;
constexpr double row_height = 18;  // of the legend
constexpr double label_step = 13;  // between the labels at the ends of curves
constexpr double marker_radius = 4.2;
constexpr double same = 1.0;  // curves within so many pixels coincide
constexpr svg::TextStyle from_start{.anchor = "start"};

// Dark enough for a white page, and distinct for most colour-blind readers.
constexpr std::array<std::string_view, 9> colours{"#0072b2", "#d55e00", "#008060", "#aa3377", "#222222",
                                                  "#b8860b", "#3a9bd9", "#7a5195", "#c02020"};
constexpr std::array<std::string_view, 4> dashes{"", "9,4", "2,3", "9,3,2,3"};

Point around(Point centre, double radius, double degrees) {
    const double angle = degrees * 3.14159265358979 / 180;
    return {centre.x + radius * std::sin(angle), centre.y - radius * std::cos(angle)};
}

void draw_polygon(Svg& svg, Point at, std::string_view colour, double radius, int corners, double first) {
    std::vector<Point> points;
    for (int i = 0; i < corners; ++i) points.push_back(around(at, radius, first + 360.0 * i / corners));
    svg.polygon(points, "white", colour, 1.6);
}

void draw_strokes(Svg& svg, Point at, std::string_view colour, std::initializer_list<double> degrees) {
    for (const double each : degrees)
        svg.line({around(at, marker_radius + 1, each), around(at, marker_radius + 1, each + 180)}, colour, 1.6);
}

void draw_marker(Svg& svg, Point at, const CurveStyle& style) {
    constexpr double r = marker_radius;
    switch (style.marker) {
        case Marker::circle: return svg.circle(at, r - 0.4, "white", style.colour, 1.6);
        case Marker::square: return draw_polygon(svg, at, style.colour, r + 0.6, 4, 45);
        case Marker::triangle: return draw_polygon(svg, at, style.colour, r + 1, 3, 0);
        case Marker::diamond: return draw_polygon(svg, at, style.colour, r + 1, 4, 0);
        case Marker::down: return draw_polygon(svg, at, style.colour, r + 1, 3, 180);
        case Marker::cross: return draw_strokes(svg, at, style.colour, {45, 135});
        case Marker::plus: return draw_strokes(svg, at, style.colour, {0, 90});
        case Marker::star: return draw_strokes(svg, at, style.colour, {0, 60, 120});
    }
}

bool coincide(Point a, Point b) { return std::abs(a.x - b.x) < same && std::abs(a.y - b.y) < same; }

class CurveDrawing {
public:
    explicit CurveDrawing(const CurveChart& chart) : chart_(chart), svg_(chart.title) {
        std::set<double> all;
        double low = 0;
        double high = 0;
        for (const Curve& curve : chart.curves)
            for (const Point& point : curve.points) {
                all.insert(point.x);
                low = low == 0 ? point.y : std::min(low, point.y);
                high = std::max(high, point.y);
            }
        x_ = axis_of_values({all.begin(), all.end()});
        y_ = logarithmic_axis(low, high);
        for (const Curve& curve : chart.curves) {
            auto& line = lines_.emplace_back();
            for (const Point& point : curve.points) line.push_back(at(point));
        }
    }

    std::string run() {
        svg_.text({margin, 22}, chart_.title, {.size = 14, .anchor = "start", .bold = true});
        draw_axes();
        draw_lines();
        for (const Ring& ring : chart_.rings) svg_.circle(at(ring.at), 9, "none", "#000", 1.2, ring.tip);
        draw_markers();
        const double legend_left = draw_end_labels() + 16;
        const double bottom = draw_legend(legend_left);
        const double title = margin + text_width(chart_.title, {.size = 14, .bold = true});
        return svg_.document(std::max({right_, title, legend_left}) + margin,
                             std::max(bottom, area.y + area.height + 52) + margin);
    }

private:
    [[nodiscard]] Point at(Point value) const {
        return {area.x + inset + x_.position(value.x) * (area.width - 2 * inset),
                area.y + (1 - y_.position(value.y)) * area.height};
    }

    void draw_axes() {
        const double bottom = area.y + area.height;
        double free_from = 0;  // labels that would touch the one before are left out
        for (const double tick : x_.ticks) {
            const double x = at({tick, y_.low}).x;
            svg_.line({{x, area.y}, {x, bottom + 5}}, "#e4e4e4", 1);
            const std::string label = tick_text(tick);
            const double half = text_width(label, {}) / 2;
            if (x - half < free_from) continue;
            free_from = x + half + 4;
            svg_.text({x, bottom + 18}, label);
        }
        for (const double tick : y_.minor) {
            const double y = at({x_.low, tick}).y;
            svg_.line({{area.x, y}, {area.x + area.width, y}}, "#f2f2f2", 1);
        }
        for (const double tick : y_.ticks) {
            const double y = at({x_.low, tick}).y;
            svg_.line({{area.x - 5, y}, {area.x + area.width, y}}, "#d4d4d4", 1);
            svg_.text({area.x - 8, y + 4}, tick_text(tick), {.anchor = "end"});
        }
        svg_.rect(area, "none", "#444", {}, 0);
        svg_.text({area.x + area.width / 2, bottom + 42}, chart_.x_title, {.size = 12});
        svg_.text({margin + 8, area.y + area.height / 2}, chart_.y_title, {.size = 12, .upwards = true});
    }

    // Solid lines below dashed ones: where they coincide, both are visible.
    void draw_lines() {
        for (std::size_t layer = 0; layer < dashes.size(); ++layer)
            for (std::size_t i = 0; i < lines_.size(); ++i) {
                const CurveStyle style = style_of_curve(i);
                if (style.dash == dashes.at(layer) && !lines_[i].empty())
                    svg_.line(lines_[i], style.colour, 1.8, chart_.curves[i].name, style.dash);
            }
    }

    // At a point of several curves one of them has its marker: the one with the fewest so far, then with the fewest
    // points. Curves that got none this way have all theirs, on top.
    void draw_markers() {
        std::vector<std::size_t> drawn(lines_.size(), 0);
        std::vector<Point> taken;
        const auto is_taken = [&](Point point) {
            return std::ranges::any_of(taken, [&](Point other) { return coincide(point, other); });
        };
        for (const double x : x_.ticks)
            for (std::size_t i = 0; i < lines_.size(); ++i)
                for (std::size_t k = 0; k < lines_[i].size(); ++k) {
                    if (chart_.curves[i].points[k].x != x || is_taken(lines_[i][k])) continue;
                    const Point point = lines_[i][k];
                    const std::size_t chosen = choose(point, drawn);
                    ++drawn[chosen];
                    taken.push_back(point);
                    draw_marker(svg_, point, style_of_curve(chosen));
                }
        for (std::size_t i = 0; i < lines_.size(); ++i)
            if (drawn[i] == 0)
                for (const Point& point : lines_[i]) draw_marker(svg_, point, style_of_curve(i));
    }

    [[nodiscard]] std::size_t choose(Point point, const std::vector<std::size_t>& drawn) const {
        std::vector<std::size_t> here;
        for (std::size_t i = 0; i < lines_.size(); ++i)
            if (std::ranges::any_of(lines_[i], [&](Point other) { return coincide(point, other); })) here.push_back(i);
        return *std::ranges::min_element(here, {},
                                         [&](std::size_t i) { return std::pair(drawn[i], lines_[i].size()); });
    }

    struct EndLabel {
        Point at;
        std::string text;
        double y;  // of the text's middle
    };

    [[nodiscard]] std::vector<EndLabel> end_labels() const {
        std::vector<EndLabel> labels;
        for (std::size_t i = 0; i < lines_.size(); ++i) {
            if (lines_[i].empty()) continue;
            const Point end = lines_[i].back();
            const auto found =
                std::ranges::find_if(labels, [&](const EndLabel& label) { return coincide(label.at, end); });
            if (found == labels.end())
                labels.push_back({end, fmt::to_string(i + 1), end.y});
            else
                found->text += fmt::format(", {}", i + 1);
        }
        std::ranges::sort(labels, {}, [](const EndLabel& label) { return label.at.y; });
        return labels;
    }

    // Numbers beside the ends of the curves; those of the right edge are moved apart. Returns their right end.
    double draw_end_labels() {
        const double right = area.x + area.width;
        double label_right = right + 20;
        double free_from = area.y;
        std::vector<EndLabel> outside;
        for (const EndLabel& label : end_labels()) {
            if (label.at.x < right - inset - same) {
                svg_.text({label.at.x + 9, label.at.y - 8}, label.text, {.size = 10, .anchor = "start", .bold = true});
                continue;
            }
            outside.push_back(label);
            outside.back().y = std::max(label.y, free_from);
            free_from = outside.back().y + label_step;
        }
        double free_to = area.y + area.height;
        for (auto label = outside.rbegin(); label != outside.rend(); ++label) {
            label->y = std::min(label->y, free_to);
            free_to = label->y - label_step;
        }
        for (const EndLabel& label : outside) {
            svg_.line({{right - inset + 10, label.at.y}, {right + 4, label.at.y}, {right + 16, label.y}}, "#888", 0.8);
            svg_.text({right + 19, label.y + 4}, label.text, {.size = 10, .anchor = "start", .bold = true});
            label_right = std::max(label_right, right + 19 + text_width(label.text, {.size = 10, .bold = true}));
        }
        return label_right;
    }

    // Returns the bottom.
    double draw_legend(double x) {
        double y = area.y + 6;
        const auto text = [&](double left, const std::string& what) {
            svg_.text({left, y + 4}, what, from_start);
            right_ = std::max(right_, left + text_width(what, from_start));
            y += row_height;
        };
        for (std::size_t i = 0; i < chart_.curves.size(); ++i) {
            const CurveStyle style = style_of_curve(i);
            svg_.text({x + 16, y + 4}, fmt::to_string(i + 1), {.size = 10, .anchor = "end", .bold = true});
            svg_.line({{x + 22, y}, {x + 66, y}}, style.colour, 1.8, {}, style.dash);
            draw_marker(svg_, {x + 44, y}, style);
            text(x + 74, chart_.curves[i].name);
        }
        if (!chart_.rings.empty()) {
            y += 4;
            svg_.circle({x + 44, y}, 9, "none", "#000", 1.2);
            text(x + 74, chart_.ring_meaning);
        }
        if (chart_.curves.size() > 1) {
            y += 4;
            text(x, "numbers: ends of the curves");
            text(x, "on a shared line markers alternate");
        }
        return y;
    }

    const CurveChart& chart_;
    Svg svg_;
    Axis x_;
    Axis y_;
    std::vector<std::vector<Point>> lines_;  // the curves in pixels
    double right_ = 0;                       // of the legend
};

}  // namespace

CurveStyle style_of_curve(std::size_t index) {
    const std::size_t turn = index / marker_count;
    return {colours.at(index % colours.size()), dashes.at((index + turn) % dashes.size()),
            static_cast<Marker>(index % marker_count)};
}

std::string draw(const CurveChart& chart) { return CurveDrawing(chart).run(); }

}  // namespace npushmem::chart
