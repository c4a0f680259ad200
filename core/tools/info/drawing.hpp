// SPDX-License-Identifier: BSD-3-Clause
// Drawing of a job: positions of its hosts, devices and PEs, and the SVG file.
#pragma once

#include <map>
#include <string>
#include <vector>

#include "core/base/svg.hpp"
#include "core/tools/info/job_view.hpp"
#include "core/tools/info/reports.hpp"

namespace npushmem::info {

using svg::Point;
using svg::Rect;
using svg::Svg;
using svg::TextStyle;

// The positions of a host's boxes and cells: NPUs in a row above, NICs in a row below, so that the lines between them
// cross no other shape.
struct NpuCell {
    Rect at;
    NpuLeaf leaf;
};

struct GroupBox {
    Rect at;
    std::string label;
};

// Sizes of cells, and the distance between shapes.
struct CellSize {
    double width = 104;
    double gap = 10;

    static constexpr double height = 46;
};

struct HostLayoutOnPage {
    CellSize cell;
    std::vector<GroupBox> boxes;  // outer before inner
    std::vector<NpuCell> npus;
    std::map<std::size_t, Rect> nics;  // by rail
    double width = 0;
    double bottom = 0;
};

// Lays the trees out side by side, from `origin` to the right and down, with the largest cells that fit into `width`.
// If even the smallest cells do not fit, the layout is wider.
HostLayoutOnPage lay_out(const std::vector<DeviceTree>& trees, Point origin, double width);

// The first of `variants`, from long to short, that fits into `width`, in letters as large as possible up to the size
// of `style`. The last variant if none fits.
struct FittedText {
    std::string text;
    TextStyle style;
};
FittedText fit_text(const std::vector<std::string>& variants, double width, TextStyle style);

// The label of a box, and its shorter forms: without what follows a comma, and the address alone.
std::vector<std::string> label_variants(const std::string& label);

// A picture of a job: the host with its NUMA nodes, switches, PEs and NICs, the NICs of each PE and their distance, the
// rails to the other hosts, a legend of all colours and lines that occur, and the transport map.

// An SVG document, reduced to a page of A4 if it is larger. Two hosts of 16 ports fit unreduced.
std::string draw(const JobView& job);

}  // namespace npushmem::info
