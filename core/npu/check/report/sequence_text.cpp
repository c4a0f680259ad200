// SPDX-License-Identifier: BSD-3-Clause
// A sequence diagram as lines of text.
#include <fmt/format.h>

#include <algorithm>
#include <string_view>

#include "core/base/svg.hpp"
#include "core/npu/check/report/sequence.hpp"

namespace npushmem::npu::check {
namespace {

constexpr std::size_t place_width = 22;  // of the source lines at the right
constexpr std::size_t min_column = 19;

std::vector<std::string> letters_of(const std::string& text) {
    std::vector<std::string> letters;
    for (const char c : text) {
        if (letters.empty() || !svg::continues_letter(c)) letters.emplace_back();
        letters.back() += c;
    }
    return letters;
}

// A line of characters of one column each; every character is UTF-8.
class TextLine {
public:
    TextLine(std::size_t columns, const std::vector<std::size_t>& centres) : cells_(columns, " ") {
        for (const std::size_t centre : centres) cells_[centre] = "│";
    }

    void set(std::size_t at, std::string_view glyph) { cells_[at] = glyph; }
    // Around `centre`, inside [low, high). An ellipsis stands for what does not fit.
    void write(const std::string& text, std::size_t centre, std::size_t low, std::size_t high) {
        const std::vector<std::string> letters = letters_of(text);
        const std::size_t length = std::min(letters.size(), high - low);
        const std::size_t begin = std::clamp(centre - std::min(centre, length / 2), low, high - length);
        for (std::size_t i = 0; i < length; ++i) cells_[begin + i] = letters[i];
        if (length < letters.size() && length > 0) cells_[begin + length - 1] = "…";
    }
    // A horizontal line between two centres, with an arrow head at `to`.
    void connect(std::size_t from, std::size_t to, std::string_view glyph, const std::string& label) {
        const std::size_t low = std::min(from, to);
        const std::size_t high = std::max(from, to);
        for (std::size_t i = low + 1; i < high; ++i) cells_[i] = glyph;
        cells_[from] = from < to ? "├" : "┤";
        cells_[to < from ? to + 1 : to - 1] = to < from ? "◀" : "▶";
        if (!label.empty()) write(" " + label + " ", (low + high) / 2, low + 2, high - 2);
    }
    [[nodiscard]] std::string text() const {
        std::string all;
        for (const std::string& cell : cells_) all += cell;
        return all.substr(0, all.find_last_not_of(' ') + 1) + "\n";
    }

private:
    std::vector<std::string> cells_;
};

class TextDiagram {
public:
    TextDiagram(const Finding& finding, std::size_t columns)
        : finding_(finding), width_(columns), sequence_(finding, (columns - place_width) / min_column) {
        const std::size_t count = sequence_.columns().size();
        column_ = (width_ - place_width) / std::max<std::size_t>(count, 1);
        for (std::size_t i = 0; i < count; ++i) centres_.push_back(i * column_ + column_ / 2);
    }

    std::string run() {
        std::string text;
        for (const std::string& line : wrapped(headline(finding_), width_)) text += line + "\n";
        text += "\n" + header() + TextLine(width_, centres_).text();
        for (std::size_t i = 0; i < sequence_.rows().size(); ++i) {
            for (const Sequence::Arrow& arrow : sequence_.arrows())
                if (arrow.to == i) text += arrow_line(arrow);
            text += row_line(sequence_.rows()[i]);
        }
        text += "\n";
        for (const std::string& remark : remarks(finding_))
            for (const std::string& line : wrapped(remark, width_)) text += line + "\n";
        if (sequence_.hidden() > 0) text += fmt::format("cores that are not shown: {}\n", sequence_.hidden());
        return text;
    }

private:
    [[nodiscard]] std::string header() const {
        TextLine line(width_, {});
        for (std::size_t i = 0; i < centres_.size(); ++i)
            line.write(sequence_.columns()[i].label, centres_[i], i * column_, (i + 1) * column_ - 1);
        return line.text();
    }

    [[nodiscard]] std::string row_line(const Sequence::Row& row) const {
        TextLine line(width_, centres_);
        const std::size_t low = row.column * column_;
        const std::string what = row.landing ? std::string(row.event.what) + " arrives" : row.event.text();
        line.write((row.accused ? "  " : "") + what, centres_[row.column], low, low + column_ - 1);
        if (row.accused) mark(line, what, row.column);
        const std::string place = without_folders(row.place);
        if (!row.landing) line.write(place, width_ - place_width / 2, width_ - place_width + 1, width_);
        return line.text();
    }

    // A cross before the text.
    void mark(TextLine& line, const std::string& what, std::size_t column) const {
        const std::size_t length = std::min(letters_of(what).size() + 2, column_ - 1);
        const std::size_t low = column * column_;
        const std::size_t half = std::min(centres_[column] - low, length / 2);
        line.set(std::min(centres_[column] - half, low + column_ - 1 - length), "✘");
    }

    [[nodiscard]] std::string arrow_line(const Sequence::Arrow& arrow) const {
        const std::size_t from = sequence_.rows()[arrow.from].column;
        const std::size_t to = sequence_.rows()[arrow.to].column;
        const bool missing = arrow.kind == Sequence::Arrow::Kind::missing;
        if (from == to && !missing) return {};
        TextLine line(width_, centres_);
        if (from == to) {
            const std::size_t low = from * column_;
            line.set(centres_[from], "╎");
            line.write(missing_edge(finding_.hazard), centres_[from] + 6, centres_[from] + 2, low + column_ - 1);
        } else {
            const bool landing = arrow.kind == Sequence::Arrow::Kind::landing;
            line.connect(centres_[from], centres_[to],
                         missing   ? "╌"
                         : landing ? "┈"
                                   : "─",
                         missing ? missing_edge(finding_.hazard) : "");
        }
        return line.text();
    }

    const Finding& finding_;
    std::size_t width_;
    Sequence sequence_;
    std::size_t column_ = 0;
    std::vector<std::size_t> centres_;
};

}  // namespace
}  // namespace npushmem::npu::check

namespace npushmem::npu {

std::string Finding::diagram(int columns) const {
    return check::TextDiagram(*this, static_cast<std::size_t>(std::clamp(columns, 80, 160))).run();
}

}  // namespace npushmem::npu
