// SPDX-License-Identifier: BSD-3-Clause
// Reads the SVG documents of svg::Svg back, and checks what every picture must satisfy.
#pragma once

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <map>
#include <regex>
#include <sstream>
#include <string>
#include <vector>

#include "core/base/svg.hpp"

namespace npushmem::fakes {

struct SvgElement {
    std::string name;
    std::map<std::string, std::string> attributes;
    std::string text;
    std::string tip;

    [[nodiscard]] std::string attribute(const std::string& key) const {
        const auto found = attributes.find(key);
        return found == attributes.end() ? std::string() : found->second;
    }
    [[nodiscard]] double number(const std::string& key) const { return std::stod(attributes.at(key)); }
};

struct SvgPicture {
    double width = 0;  // of the view box
    double height = 0;
    std::vector<SvgElement> elements;  // without the title and the background

    [[nodiscard]] std::vector<SvgElement> all(const std::string& name) const {
        std::vector<SvgElement> out;
        for (const auto& element : elements)
            if (element.name == name) out.push_back(element);
        return out;
    }
    [[nodiscard]] std::vector<std::string> texts() const {
        std::vector<std::string> out;
        for (const auto& element : all("text")) out.push_back(element.text);
        return out;
    }
};

// Fails the test for anything that is no element.
inline SvgPicture read_svg(const std::string& document) {
    static const std::regex head(R"re(^<svg [^>]*viewBox="0 0 ([0-9.]+) ([0-9.]+)"[^>]*>$)re");
    static const std::regex element(
        R"re(^<(title|text|rect|polyline|polygon|circle|path)((?: [a-z0-9-]+="[^"<]*")*)(?:/>|>(?:<title>([^<]*)</title>)?([^<]*)</\1>)$)re");
    static const std::regex attribute(R"re( ([a-z0-9-]+)="([^"]*)")re");
    SvgPicture picture;
    std::istringstream lines(document);
    std::string line;
    std::smatch found;
    std::getline(lines, line);
    EXPECT_TRUE(std::regex_match(line, found, head)) << line;
    if (found.empty()) return picture;
    picture.width = std::stod(found[1]);
    picture.height = std::stod(found[2]);
    while (std::getline(lines, line) && line != "</svg>") {
        EXPECT_TRUE(std::regex_match(line, found, element)) << line;
        if (found.empty()) continue;
        SvgElement next{found[1], {}, found[4], found[3]};
        const std::string attributes = found[2];
        for (std::sregex_iterator i(attributes.begin(), attributes.end(), attribute), end; i != end; ++i)
            next.attributes[(*i)[1]] = (*i)[2];
        if (next.name != "title" && next.attribute("width") != "100%") picture.elements.push_back(std::move(next));
    }
    EXPECT_EQ(line, "</svg>");
    return picture;
}

// The estimated place of a text.
inline svg::Rect box_of(const SvgElement& text) {
    const double size = text.number("font-size");
    const double width = svg::text_width(text.text, {.size = size,
                                                     .bold = text.attribute("font-weight") == "bold",
                                                     .monospace = text.attribute("font-family") == "monospace"});
    const std::string anchor = text.attribute("text-anchor");
    const double before = anchor == "start" ? 0 : anchor == "middle" ? width / 2 : width;
    const double x = text.number("x");
    const double y = text.number("y");
    if (!text.attribute("transform").empty()) return {x - size, y - before, size, width};
    return {x - before, y - 0.75 * size, width, 0.95 * size};
}

inline std::vector<svg::Point> points_of(const SvgElement& element) {
    if (element.name == "text") {
        const svg::Rect box = box_of(element);
        return {{box.x, box.y}, {box.x + box.width, box.y + box.height}};
    }
    if (element.name == "rect") {
        const svg::Point from{element.number("x"), element.number("y")};
        EXPECT_GE(element.number("width"), 0);
        EXPECT_GE(element.number("height"), 0);
        return {from, {from.x + element.number("width"), from.y + element.number("height")}};
    }
    if (element.name == "circle") {
        const double r = element.number("r");
        const svg::Point at{element.number("cx"), element.number("cy")};
        return {{at.x - r, at.y - r}, {at.x + r, at.y + r}};
    }
    std::string numbers = element.attribute(element.name == "path" ? "d" : "points");
    std::replace_if(
        numbers.begin(), numbers.end(), [](char c) { return c == 'M' || c == 'C' || c == ','; }, ' ');
    std::istringstream in(numbers);
    std::vector<svg::Point> points;
    for (svg::Point point; in >> point.x >> point.y;) points.push_back(point);
    EXPECT_TRUE(in.eof()) << numbers;
    EXPECT_FALSE(points.empty());
    return points;
}

inline void expect_inside_the_view_box(const SvgPicture& picture) {
    for (const auto& element : picture.elements) {
        for (const svg::Point& point : points_of(element)) {
            EXPECT_TRUE(std::isfinite(point.x) && point.x >= 0 && point.x <= picture.width)
                << element.name << " " << element.text << element.tip << ": x " << point.x;
            EXPECT_TRUE(std::isfinite(point.y) && point.y >= 0 && point.y <= picture.height)
                << element.name << " " << element.text << element.tip << ": y " << point.y;
        }
    }
}

inline void expect_separate_texts(const SvgPicture& picture) {
    const auto texts = picture.all("text");
    for (std::size_t i = 0; i < texts.size(); ++i) {
        const svg::Rect a = box_of(texts[i]);
        for (std::size_t j = 0; j < i; ++j) {
            const svg::Rect b = box_of(texts[j]);
            const bool apart =
                a.x + a.width <= b.x || b.x + b.width <= a.x || a.y + a.height <= b.y || b.y + b.height <= a.y;
            EXPECT_TRUE(apart) << "\"" << texts[i].text << "\" overlaps \"" << texts[j].text << "\"";
        }
    }
}

}  // namespace npushmem::fakes
