// SPDX-License-Identifier: BSD-3-Clause
// A picture in the SVG format, built element by element in the order of painting. Lengths are pixels.
#pragma once

#include <string>
#include <string_view>
#include <vector>

namespace npushmem::svg {

// Whether the byte continues a letter of UTF-8: a text must not be cut before it.
inline bool continues_letter(char byte) { return (static_cast<unsigned char>(byte) & 0xc0) == 0x80; }

struct Point {
    double x = 0;
    double y = 0;
};

struct Rect {
    double x = 0;
    double y = 0;
    double width = 0;
    double height = 0;

    [[nodiscard]] Point top() const { return {x + width / 2, y}; }
    [[nodiscard]] Point bottom() const { return {x + width / 2, y + height}; }
};

struct TextStyle {
    double size = 11;
    std::string_view colour = "#222";
    std::string_view anchor = "middle";  // start, middle, end
    bool bold = false;
    bool monospace = false;
    bool upwards = false;  // turned by 90 degrees, to be read from the right
};

// The width of a text in pixels, estimated from above for the usual fonts.
double text_width(std::string_view text, const TextStyle& style);

class Svg {
public:
    // `title`: viewers show it and screen readers read it.
    explicit Svg(std::string title) : title_(std::move(title)) {}

    // `tip`: viewers show it at the pointer; may be empty.
    void rect(const Rect& at, std::string_view fill, std::string_view stroke, std::string_view tip = {},
              double corner = 4);
    // A curve that leaves and arrives vertically. `dash`: as SVG's stroke-dasharray, empty for a solid line.
    void curve(Point from, Point to, std::string_view colour, double width, std::string_view dash,
               std::string_view tip = {});
    // From point to point; the same `tip` on all of it. `dash`: as above.
    void line(const std::vector<Point>& points, std::string_view colour, double width, std::string_view tip = {},
              std::string_view dash = {});
    void polygon(const std::vector<Point>& points, std::string_view fill, std::string_view stroke, double width);
    void circle(Point centre, double radius, std::string_view fill, std::string_view stroke, double width,
                std::string_view tip = {});
    void text(Point at, std::string_view what, const TextStyle& style = {});

    // The whole document, on white. A drawing that is larger than `page` is shown reduced to it.
    [[nodiscard]] std::string document(double width, double height) const;
    [[nodiscard]] std::string document(double width, double height, const Rect& page) const;

private:
    std::string title_;
    std::string body_;
};

// A4, landscape, without its margins, in pixels of 1/96 inch.
inline constexpr Rect a4_landscape{0, 0, 1123, 794};

// With &, <, > and quotes replaced.
std::string escaped(std::string_view text);

}  // namespace npushmem::svg
