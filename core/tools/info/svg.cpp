// SPDX-License-Identifier: BSD-3-Clause
#include "core/tools/info/svg.hpp"

#include <fmt/format.h>

namespace npushmem::info {

namespace {

std::string tip_element(std::string_view tip) {
    return tip.empty() ? std::string() : fmt::format("<title>{}</title>", escaped(tip));
}

}  // namespace

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
        from.x, from.y, from.x, from.y + bend, to.x, to.y - bend, to.x, to.y, colour, width,
        dash.empty() ? std::string() : fmt::format(" stroke-dasharray=\"{}\"", dash), tip_element(tip));
}

void Svg::line(const std::vector<Point>& points, std::string_view colour, double width, std::string_view tip) {
    std::string all;
    for (const Point& point : points) all += fmt::format("{}{:.1f},{:.1f}", all.empty() ? "" : " ", point.x, point.y);
    body_ += fmt::format("<polyline points=\"{}\" fill=\"none\" stroke=\"{}\" stroke-width=\"{:.1f}\">{}</polyline>\n",
                         all, colour, width, tip_element(tip));
}

void Svg::text(Point at, std::string_view what, const TextStyle& style) {
    body_ += fmt::format(
        "<text x=\"{:.1f}\" y=\"{:.1f}\" font-size=\"{:.0f}\" fill=\"{}\" text-anchor=\"{}\"{}{}>{}</text>\n", at.x,
        at.y, style.size, style.colour, style.anchor, style.bold ? " font-weight=\"bold\"" : "",
        style.monospace ? " font-family=\"monospace\"" : "", escaped(what));
}

std::string Svg::document(double width, double height) const {
    return fmt::format(
        "<svg xmlns=\"http://www.w3.org/2000/svg\" width=\"{0:.0f}\" height=\"{1:.0f}\" viewBox=\"0 0 {0:.0f} "
        "{1:.0f}\" font-family=\"sans-serif\">\n<title>{2}</title>\n"
        "<rect width=\"100%\" height=\"100%\" fill=\"white\"/>\n{3}</svg>\n",
        width, height, escaped(title_), body_);
}

}  // namespace npushmem::info
