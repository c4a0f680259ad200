// What of a machine's PCI forest a drawing shows: the places of PEs and NICs, grouped by what separates them. Bridges
// that separate nothing are left out.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "core/tools/info/job_view.hpp"

namespace npushmem::info {

// NPUs at one place.
struct NpuLeaf {
    std::string label;                // "accelerator 03:00.0"
    std::vector<std::size_t> places;  // indices into JobView::places; empty: idle
};

struct NicLeaf {
    std::size_t rail = 0;  // index into JobView::rails
};

struct DeviceTree {
    std::string label;  // "NUMA node 0", "PCIe switch 01:00.0"
    std::vector<NpuLeaf> npus;
    std::vector<NicLeaf> nics;
    std::vector<DeviceTree> groups;

    [[nodiscard]] bool empty() const { return npus.empty() && nics.empty() && groups.empty(); }
};

// One tree per NUMA node that has anything to show, in order; then one for what is at no known node.
std::vector<DeviceTree> device_trees(const JobView& job);

}  // namespace npushmem::info
