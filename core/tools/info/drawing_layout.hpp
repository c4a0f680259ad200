// Where the boxes and cells of a host are on the drawing: NPUs in a row above, NICs in a row below, so that the lines
// between them cross nothing else.
#pragma once

#include <map>
#include <string>
#include <vector>

#include "core/tools/info/device_tree.hpp"
#include "core/tools/info/svg.hpp"

namespace npushmem::info {

struct NpuCell {
    Rect at;
    NpuLeaf leaf;
};

struct GroupBox {
    Rect at;
    std::string label;
};

struct HostLayoutOnPage {
    std::vector<GroupBox> boxes;  // outer before inner
    std::vector<NpuCell> npus;
    std::map<std::size_t, Rect> nics;  // by rail
    double width = 0;
    double bottom = 0;
};

constexpr double cell_width = 104;
constexpr double cell_height = 46;
constexpr double gap = 10;

// Lays the trees out side by side, from `origin` to the right and down.
HostLayoutOnPage lay_out(const std::vector<DeviceTree>& trees, Point origin);

}  // namespace npushmem::info
