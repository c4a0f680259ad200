// SPDX-License-Identifier: BSD-3-Clause
#include "core/base/svg.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <string_view>

namespace npushmem::svg {

namespace {

std::string tip_element(std::string_view tip) {
    return tip.empty() ? std::string() : fmt::format("<title>{}</title>", escaped(tip));
}

std::string dash_attribute(std::string_view dash) {
    return dash.empty() ? std::string() : fmt::format(" stroke-dasharray=\"{}\"", dash);
}

std::string points_attribute(const std::vector<Point>& points) {
    std::string all;
    for (const Point& point : points) all += fmt::format("{}{:.1f},{:.1f}", all.empty() ? "" : " ", point.x, point.y);
    return all;
}

double monospace_width(char c) { return continues_letter(c) ? 0 : 0.603; }

// The width of a letter of size 1 in DejaVu Sans, the widest of the usual fonts, rounded up.
double letter_width(char c) {
    constexpr std::string_view narrow = " .,:;'|!()[]/-fijlrt";
    if (continues_letter(c)) return 0;
    if (narrow.find(c) != std::string_view::npos) return 0.41;
    if (c == 'm' || c == 'w' || c == 'M' || c == 'W' || c == '%') return 1;
    return c >= 'A' && c <= 'Z' ? 0.71 : 0.64;
}

}  // namespace

double text_width(std::string_view text, const TextStyle& style) {
    double letters = 0;
    for (const char c : text) letters += style.monospace ? monospace_width(c) : letter_width(c);
    return letters * style.size * (style.bold && !style.monospace ? 1.13 : 1);
}

std::string escaped(std::string_view text) {
    std::string out;
    for (const char c : text) {
        switch (c) {
            case '&': out += "&amp;"; break;
            case '<': out += "&lt;"; break;
            case '>': out += "&gt;"; break;
            case '"': out += "&quot;"; break;
            default: out += c;
        }
    }
    return out;
}

void Svg::rect(const Rect& at, std::string_view fill, std::string_view stroke, std::string_view tip, double corner) {
    body_ += fmt::format(
        "<rect x=\"{:.1f}\" y=\"{:.1f}\" width=\"{:.1f}\" height=\"{:.1f}\" rx=\"{:.0f}\" fill=\"{}\" "
        "stroke=\"{}\">{}</rect>\n",
        at.x, at.y, at.width, at.height, corner, fill, stroke, tip_element(tip));
}

void Svg::curve(Point from, Point to, std::string_view colour, double width, std::string_view dash,
                std::string_view tip) {
    const double bend = (to.y - from.y) / 2;
    body_ += fmt::format(
        "<path d=\"M{:.1f},{:.1f} C{:.1f},{:.1f} {:.1f},{:.1f} {:.1f},{:.1f}\" fill=\"none\" stroke=\"{}\" "
        "stroke-width=\"{:.1f}\"{}>{}</path>\n",
        from.x, from.y, from.x, from.y + bend, to.x, to.y - bend, to.x, to.y, colour, width, dash_attribute(dash),
        tip_element(tip));
}

void Svg::line(const std::vector<Point>& points, std::string_view colour, double width, std::string_view tip,
               std::string_view dash) {
    body_ +=
        fmt::format("<polyline points=\"{}\" fill=\"none\" stroke=\"{}\" stroke-width=\"{:.1f}\"{}>{}</polyline>\n",
                    points_attribute(points), colour, width, dash_attribute(dash), tip_element(tip));
}

void Svg::polygon(const std::vector<Point>& points, std::string_view fill, std::string_view stroke, double width) {
    body_ += fmt::format("<polygon points=\"{}\" fill=\"{}\" stroke=\"{}\" stroke-width=\"{:.1f}\"></polygon>\n",
                         points_attribute(points), fill, stroke, width);
}

void Svg::circle(Point centre, double radius, std::string_view fill, std::string_view stroke, double width,
                 std::string_view tip) {
    body_ += fmt::format(
        "<circle cx=\"{:.1f}\" cy=\"{:.1f}\" r=\"{:.1f}\" fill=\"{}\" stroke=\"{}\" stroke-width=\"{:.1f}\">{}"
        "</circle>\n",
        centre.x, centre.y, radius, fill, stroke, width, tip_element(tip));
}

void Svg::text(Point at, std::string_view what, const TextStyle& style) {
    body_ += fmt::format(
        "<text x=\"{:.1f}\" y=\"{:.1f}\" font-size=\"{:.0f}\" fill=\"{}\" text-anchor=\"{}\"{}{}{}>{}</text>\n", at.x,
        at.y, style.size, style.colour, style.anchor, style.bold ? " font-weight=\"bold\"" : "",
        style.monospace ? " font-family=\"monospace\"" : "",
        style.upwards ? fmt::format(" transform=\"rotate(-90 {:.1f} {:.1f})\"", at.x, at.y) : "", escaped(what));
}

std::string Svg::document(double width, double height) const { return document(width, height, {0, 0, width, height}); }

std::string Svg::document(double width, double height, const Rect& page) const {
    const double scale = std::min({1.0, page.width / width, page.height / height});
    return fmt::format(
        "<svg xmlns=\"http://www.w3.org/2000/svg\" width=\"{:.0f}\" height=\"{:.0f}\" viewBox=\"0 0 {:.0f} {:.0f}\" "
        "font-family=\"sans-serif\">\n<title>{}</title>\n"
        "<rect width=\"100%\" height=\"100%\" fill=\"white\"/>\n{}</svg>\n",
        width * scale, height * scale, width, height, escaped(title_), body_);
}

}  // namespace npushmem::svg
