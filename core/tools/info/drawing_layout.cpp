#include "core/tools/info/drawing_layout.hpp"

#include <algorithm>

namespace npushmem::info {

namespace {

constexpr double header = 20;       // above the content of a box, for its label
constexpr double lines_room = 120;  // between the two rows

int depth_of(const DeviceTree& tree) {
    int deepest = 0;
    for (const auto& group : tree.groups) deepest = std::max(deepest, 1 + depth_of(group));
    return deepest;
}

class HostLayouter {
public:
    HostLayouter(Point origin, int depth)
        : top_(origin.y), npu_row_(origin.y + header * (depth + 1)), nic_row_(npu_row_ + cell_height + lines_room) {
        out_.bottom = nic_row_ + cell_height + gap * (depth + 1);
    }

    // Returns the x behind the tree.
    double place(const DeviceTree& tree, double x, int depth) {
        const std::size_t box = out_.boxes.size();
        out_.boxes.push_back({});
        double inside = x + gap;
        inside += place_leaves(tree, inside);
        for (const auto& group : tree.groups) inside = place(group, inside, depth + 1) + gap;
        const double right = std::max(inside, x + gap + min_width(tree));
        const double y = top_ + header * depth;
        out_.boxes[box] = {{x, y, right - x, out_.bottom - gap * depth - y}, tree.label};
        return right;
    }

    HostLayoutOnPage take(double width) {
        out_.width = width;
        return std::move(out_);
    }

private:
    // The label must fit: about 6 pixels for a letter of its size.
    static double min_width(const DeviceTree& tree) { return 6.0 * static_cast<double>(tree.label.size()); }

    double place_leaves(const DeviceTree& tree, double x) {
        const double width = columns(std::max(tree.npus.size(), tree.nics.size()));
        const double first_npu = x + (width - columns(tree.npus.size())) / 2;
        const double first_nic = x + (width - columns(tree.nics.size())) / 2;
        for (std::size_t i = 0; i < tree.npus.size(); ++i)
            out_.npus.push_back({{first_npu + columns(i), npu_row_, cell_width, cell_height}, tree.npus[i]});
        for (std::size_t i = 0; i < tree.nics.size(); ++i)
            out_.nics[tree.nics[i].rail] = {first_nic + columns(i), nic_row_, cell_width, cell_height};
        return width;
    }

    static double columns(std::size_t count) { return (cell_width + gap) * static_cast<double>(count); }

    HostLayoutOnPage out_;
    double top_;
    double npu_row_;
    double nic_row_;
};

}  // namespace

HostLayoutOnPage lay_out(const std::vector<DeviceTree>& trees, Point origin) {
    int depth = 0;
    for (const auto& tree : trees) depth = std::max(depth, depth_of(tree));
    HostLayouter layouter(origin, depth);
    double x = origin.x;
    for (const auto& tree : trees) x = layouter.place(tree, x, 0) + gap;
    return layouter.take(x - origin.x);
}

}  // namespace npushmem::info
