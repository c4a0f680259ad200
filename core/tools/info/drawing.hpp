// SPDX-License-Identifier: BSD-3-Clause
// Drawing of a job: positions of its hosts, devices and PEs, and the SVG file.
#pragma once

#include <map>
#include <string>
#include <vector>

#include "core/tools/info/job_view.hpp"
#include "core/tools/info/reports.hpp"
#include "core/tools/info/svg.hpp"

namespace npushmem::info {

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

// A picture of a job: the host with its NUMA nodes, switches, PEs and NICs, the NICs of each PE and their distance, the
// rails to the other hosts, and the transport map.

// An SVG document.
std::string draw(const JobView& job);

}  // namespace npushmem::info
