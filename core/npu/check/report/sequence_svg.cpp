// SPDX-License-Identifier: BSD-3-Clause
// A sequence diagram as an SVG document.
#include <fmt/format.h>

#include <algorithm>
#include <string_view>

#include "core/base/svg.hpp"
#include "core/npu/check/report/sequence.hpp"

namespace npushmem::npu::check {
namespace {

using svg::Point;
using svg::Rect;
using svg::Svg;

using ArrowKind = Sequence::Arrow::Kind;

constexpr std::size_t max_svg_columns = 8;
constexpr double margin = 16;
constexpr double column_width = 246;
constexpr double box_width = 178;
constexpr double box_height = 32;
constexpr double row_height = 42;
constexpr double line_height = 15;
constexpr double bracket = 12;  // distance of an arrow from the boxes of its column
constexpr std::string_view red = "#c00000";
constexpr std::string_view pale_red = "#ffe3e0";
constexpr std::string_view blue = "#0072b2";
constexpr std::string_view grey = "#888888";
constexpr std::string_view missing_dash = "6,4";
constexpr std::string_view landing_dash = "2,3";

std::string_view colour_of(ArrowKind kind) {
    if (kind == ArrowKind::missing) return red;
    return kind == ArrowKind::cause ? blue : grey;
}

// Flags inside a column are less important than signals.
double width_of(ArrowKind kind, bool same_column) {
    if (kind == ArrowKind::missing) return 2;
    return same_column ? 0.8 : 1.4;
}

std::string_view dash_of(ArrowKind kind) {
    if (kind == ArrowKind::missing) return missing_dash;
    return kind == ArrowKind::landing ? landing_dash : std::string_view{};
}

// The longest beginning of the text that fits.
std::string fitting(std::string text, double width, const svg::TextStyle& style) {
    if (svg::text_width(text, style) <= width) return text;
    while (!text.empty() && svg::text_width(text + "...", style) > width) {
        while (text.size() > 1 && svg::continues_letter(text.back())) text.pop_back();
        text.pop_back();
    }
    return text + "...";
}

class SequenceDrawing {
public:
    explicit SequenceDrawing(const Finding& finding)
        : finding_(finding), sequence_(finding, max_svg_columns), svg_(headline(finding)) {}

    std::string run() {
        const auto columns = static_cast<double>(sequence_.columns().size());
        width_ = std::max(2 * margin + columns * column_width, 640.0);
        double y = draw_lines({headline(finding_)}, margin + line_height, true);
        top_ = y + 34;
        bottom_ = top_ + static_cast<double>(sequence_.rows().size()) * row_height;
        draw_columns();
        for (const Sequence::Arrow& arrow : sequence_.arrows()) draw_arrow(arrow);
        for (std::size_t i = 0; i < sequence_.rows().size(); ++i) draw_row(i);
        y = draw_legend(bottom_ + 26);
        std::vector<std::string> notes = remarks(finding_);
        if (sequence_.hidden() > 0) notes.push_back(fmt::format("cores that are not shown: {}", sequence_.hidden()));
        y = draw_lines(notes, y + line_height, false);
        return svg_.document(width_, y + margin);
    }

private:
    double draw_lines(const std::vector<std::string>& texts, double y, bool bold) {
        const auto characters = static_cast<std::size_t>((width_ - 2 * margin) / 7.6);
        for (const std::string& text : texts)
            for (const std::string& line : wrapped(text, characters)) {
                svg_.text({margin, y}, line, {.size = 12, .anchor = "start", .bold = bold});
                y += line_height;
            }
        return y;
    }

    [[nodiscard]] static double x_of(std::size_t column) {
        return margin + (static_cast<double>(column) + 0.5) * column_width;
    }
    [[nodiscard]] double y_of(std::size_t row) const { return top_ + (static_cast<double>(row) + 0.5) * row_height; }

    void draw_columns() {
        for (std::size_t i = 0; i < sequence_.columns().size(); ++i) {
            const double x = x_of(i);
            svg_.rect({x - box_width / 2, top_ - 28, box_width, 22}, "#e8eef4", "#445566");
            svg_.text({x, top_ - 13}, sequence_.columns()[i].label, {.size = 12, .bold = true});
            svg_.line({{x, top_ - 6}, {x, bottom_ + 6}}, "#bbbbbb", 1);
        }
    }

    void draw_head(Point at, bool to_right, std::string_view colour) {
        const double back = to_right ? -8 : 8;
        svg_.polygon({at, {at.x + back, at.y - 4}, {at.x + back, at.y + 4}}, colour, colour, 1);
    }

    // Between two columns from side to side; within a column as a bracket, on the right for missing order.
    void draw_arrow(const Sequence::Arrow& arrow) {
        const Sequence::Row& from = sequence_.rows()[arrow.from];
        const Sequence::Row& to = sequence_.rows()[arrow.to];
        const bool missing = arrow.kind == ArrowKind::missing;
        const bool same = from.column == to.column;
        const bool to_right = same ? !missing : to.column > from.column;
        const double side = to_right ? 1 : -1;
        const double from_side = same ? -side : side;
        const Point start{x_of(from.column) + from_side * box_width / 2, y_of(arrow.from)};
        const Point end{x_of(to.column) - side * (to.landing ? 0 : box_width / 2), y_of(arrow.to)};
        std::vector<Point> points{start, end};
        if (same) {
            const double x = start.x + from_side * bracket;
            points = {start, {x, start.y}, {x, end.y}, end};
        }
        svg_.line(points, colour_of(arrow.kind), width_of(arrow.kind, same), {}, dash_of(arrow.kind));
        draw_head(end, to_right, colour_of(arrow.kind));
        if (!missing) return;
        const double label = same ? end.x + bracket + 6 : end.x - side * (column_width - box_width) / 2;
        svg_.text({label, end.y + (same ? 16 : 14)}, missing_edge(finding_.hazard),
                  {.size = 11, .colour = red, .anchor = same ? "start" : "middle", .bold = true});
    }

    void draw_row(std::size_t row) {
        const Sequence::Row& at = sequence_.rows()[row];
        const double x = x_of(at.column);
        const double y = y_of(row);
        if (at.landing) {
            svg_.circle({x, y}, 4, grey, grey, 1);
            svg_.text({x + 8, y + 4}, "arrives in memory", {.size = 10, .colour = "#555555", .anchor = "start"});
            return;
        }
        svg_.rect({x - box_width / 2, y - box_height / 2, box_width, box_height}, at.accused ? pale_red : "#ffffff",
                  at.accused ? red : "#667788", at.event.text() + " at " + at.place);
        const svg::TextStyle style{.size = 11, .colour = at.accused ? red : "#222222", .bold = at.accused};
        svg_.text({x, y - 2}, fitting(at.event.text(), box_width - 6, style), style);
        const svg::TextStyle small{.size = 9, .colour = "#555555", .monospace = true};
        svg_.text({x, y + 11}, fitting(without_folders(at.place), box_width - 6, small), small);
    }

    double draw_legend(double y) {
        const auto has = [&](ArrowKind kind) {
            return std::ranges::find(sequence_.arrows(), kind, &Sequence::Arrow::kind) != sequence_.arrows().end();
        };
        const auto entry = [&](ArrowKind kind, const std::string& text) {
            svg_.line({{margin, y - 4}, {margin + 36, y - 4}}, colour_of(kind), 2, {}, dash_of(kind));
            svg_.text({margin + 44, y}, text, {.anchor = "start"});
            y += line_height;
        };
        if (has(ArrowKind::missing))
            entry(ArrowKind::missing,
                  fmt::format("{}, between the two accesses in red", missing_edge(finding_.hazard)));
        if (has(ArrowKind::cause)) entry(ArrowKind::cause, "the operation that ended a wait");
        if (has(ArrowKind::landing)) entry(ArrowKind::landing, "from the call to the arrival in memory");
        return y;
    }

    const Finding& finding_;
    Sequence sequence_;
    Svg svg_;
    double width_ = 0;
    double top_ = 0;
    double bottom_ = 0;
};

}  // namespace
}  // namespace npushmem::npu::check

namespace npushmem::npu {

std::string Finding::svg() const { return check::SequenceDrawing(*this).run(); }

}  // namespace npushmem::npu
