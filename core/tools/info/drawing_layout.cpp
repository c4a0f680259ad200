// SPDX-License-Identifier: BSD-3-Clause
// The positions of a host's devices on the page.
#include <algorithm>
#include <array>

#include "core/tools/info/drawing.hpp"

namespace npushmem::info {

namespace {

constexpr double header = 20;       // above the content of a box, for its label
constexpr double lines_room = 100;  // between the two rows
constexpr double min_letters = 9;   // the smallest size of letters
constexpr double label_padding = 6;
constexpr std::array cell_sizes{CellSize{104, 10}, CellSize{88, 8}, CellSize{74, 6},
                                CellSize{66, 4},   CellSize{60, 3}, CellSize{54, 2}};

int depth_of(const DeviceTree& tree) {
    int deepest = 0;
    for (const auto& group : tree.groups) deepest = std::max(deepest, 1 + depth_of(group));
    return deepest;
}

class HostLayouter {
public:
    HostLayouter(Point origin, int depth, const CellSize& cell)
        : top_(origin.y),
          npu_row_(origin.y + header * (depth + 1)),
          nic_row_(npu_row_ + CellSize::height + lines_room) {
        out_.cell = cell;
        out_.bottom = nic_row_ + CellSize::height + cell.gap * (depth + 1);
    }

    // Returns the x behind the tree.
    double place(const DeviceTree& tree, double x, int depth) {
        const double gap = out_.cell.gap;
        const std::size_t box = out_.boxes.size();
        out_.boxes.push_back({});
        double inside = x + gap;
        inside += place_leaves(tree, inside);
        for (const auto& group : tree.groups) inside = place(group, inside, depth + 1) + gap;
        const double right = std::max(inside, x + min_width(tree));
        const double y = top_ + header * depth;
        out_.boxes[box] = {{x, y, right - x, out_.bottom - gap * depth - y}, tree.label};
        return right;
    }

    HostLayoutOnPage take(double width) {
        out_.width = width;
        return std::move(out_);
    }

private:
    // The shortest form of the label fits.
    static double min_width(const DeviceTree& tree) {
        double least = 0;
        for (const auto& text : label_variants(tree.label)) {
            const double width = svg::text_width(text, {.size = min_letters});
            least = least == 0 ? width : std::min(least, width);
        }
        return least + 2 * label_padding;
    }

    double place_leaves(const DeviceTree& tree, double x) {
        const CellSize& cell = out_.cell;
        const double width = columns(std::max(tree.npus.size(), tree.nics.size()));
        const double first_npu = x + (width - columns(tree.npus.size())) / 2;
        const double first_nic = x + (width - columns(tree.nics.size())) / 2;
        for (std::size_t i = 0; i < tree.npus.size(); ++i)
            out_.npus.push_back({{first_npu + columns(i), npu_row_, cell.width, CellSize::height}, tree.npus[i]});
        for (std::size_t i = 0; i < tree.nics.size(); ++i)
            out_.nics[tree.nics[i].rail] = {first_nic + columns(i), nic_row_, cell.width, CellSize::height};
        return width;
    }

    [[nodiscard]] double columns(std::size_t count) const {
        return (out_.cell.width + out_.cell.gap) * static_cast<double>(count);
    }

    HostLayoutOnPage out_;
    double top_;
    double npu_row_;
    double nic_row_;
};

HostLayoutOnPage lay_out_cells(const std::vector<DeviceTree>& trees, Point origin, const CellSize& cell) {
    int depth = 0;
    for (const auto& tree : trees) depth = std::max(depth, depth_of(tree));
    HostLayouter layouter(origin, depth, cell);
    double x = origin.x;
    for (const auto& tree : trees) x = layouter.place(tree, x, 0) + cell.gap;
    return layouter.take(x - origin.x);
}

}  // namespace

HostLayoutOnPage lay_out(const std::vector<DeviceTree>& trees, Point origin, double width) {
    for (const CellSize& cell : cell_sizes) {
        auto layout = lay_out_cells(trees, origin, cell);
        if (layout.width - cell.gap <= width) return layout;
    }
    return lay_out_cells(trees, origin, cell_sizes.back());
}

FittedText fit_text(const std::vector<std::string>& variants, double width, TextStyle style) {
    TextStyle smallest = style;
    smallest.size = min_letters;
    smallest.bold = false;
    for (const auto& text : variants) {
        for (TextStyle fitting = style; fitting.size >= min_letters; fitting.size -= 1)
            if (svg::text_width(text, fitting) <= width) return {text, fitting};
        if (svg::text_width(text, smallest) <= width) return {text, smallest};
    }
    return {variants.back(), smallest};
}

std::vector<std::string> label_variants(const std::string& label) {
    std::vector<std::string> variants{label};
    if (const auto comma = label.find(','); comma != std::string::npos) {
        variants.push_back(label.substr(0, comma));
    } else if (const auto blank = label.rfind(' '); label.find(':', blank) != std::string::npos) {
        variants.push_back(label.substr(blank + 1));
    }
    return variants;
}

}  // namespace npushmem::info
