// SPDX-License-Identifier: BSD-3-Clause
#include "topology/machine/distance.hpp"

#include <algorithm>
#include <limits>

namespace npushmem::topology {
namespace {

// A climb from a device to the root: the present object (none above a root), and the bridges and links crossed so far.
struct Climb {
    std::optional<std::size_t> at;
    std::size_t bridges = 0;
    std::uint64_t narrowest = 0;

    void up(const Machine& machine) {
        const auto& object = machine.pci[*at];
        if (object.kind == PciKind::bridge) ++bridges;
        narrow(narrowest, object.link_bits_per_second);
        at = object.parent;
    }
};

// Climbs from both devices to their common ancestor, or until both have left the forest. Parents have smaller indices
// than their children and "none" orders before any index, so the larger one always climbs next.
void climb_to_common_ancestor(const Machine& machine, Climb& a, Climb& b) {
    while (a.at != b.at) (a.at > b.at ? a : b).up(machine);
}

// A switch is one upstream port with downstream ports below it. A device of a switch has one bridge between itself and
// the upstream port, the common ancestor; a second bridge belongs to another switch.
DistanceClass class_at_ancestor(const Machine& machine, const Climb& a, const Climb& b) {
    if (machine.pci[*a.at].kind == PciKind::host_bridge) return DistanceClass::phb;
    return std::max(a.bridges, b.bridges) <= 1 ? DistanceClass::pix : DistanceClass::pxb;
}

std::uint32_t known_numa_distance(const Machine& machine, const Location& a, const Location& b) {
    if (!a.numa || !b.numa) return std::numeric_limits<std::uint32_t>::max();
    // Firmware may report different numbers for the two directions.
    return std::max(numa_distance(machine, *a.numa, *b.numa), numa_distance(machine, *b.numa, *a.numa));
}

}  // namespace

void narrow(std::uint64_t& narrowest, std::uint64_t link) {
    if (link != 0 && (narrowest == 0 || link < narrowest)) narrowest = link;
}

std::string_view name_of(DistanceClass distance) {
    switch (distance) {
        case DistanceClass::pix: return "PIX";
        case DistanceClass::pxb: return "PXB";
        case DistanceClass::phb: return "PHB";
        case DistanceClass::node: return "NODE";
        case DistanceClass::sys: break;
    }
    return "SYS";
}

std::string_view path_of(DistanceClass distance) {
    switch (distance) {
        case DistanceClass::pix: return "behind the same PCIe switch";
        case DistanceClass::pxb: return "behind several PCIe switches of one tree";
        case DistanceClass::phb: return "through the same host bridge";
        case DistanceClass::node: return "across host bridges of one NUMA node";
        case DistanceClass::sys: break;
    }
    return "across NUMA nodes";
}

std::strong_ordering operator<=>(const Distance& a, const Distance& b) {
    if (const auto order = a.distance_class <=> b.distance_class; order != 0) return order;
    if (const auto order = b.bits_per_second <=> a.bits_per_second; order != 0) return order;
    return a.numa_distance <=> b.numa_distance;
}

Distance distance(const Machine& machine, const Location& a, const Location& b) {
    Climb from_a{a.pci};
    Climb from_b{b.pci};
    climb_to_common_ancestor(machine, from_a, from_b);
    Distance out;
    if (from_a.at) {
        out.distance_class = class_at_ancestor(machine, from_a, from_b);
    } else {
        out.distance_class = a.numa && a.numa == b.numa ? DistanceClass::node : DistanceClass::sys;
    }
    out.bits_per_second = from_a.narrowest;
    narrow(out.bits_per_second, from_b.narrowest);
    out.numa_distance = known_numa_distance(machine, a, b);
    return out;
}

CostTable rank_distances(const std::vector<std::vector<Distance>>& distances) {
    std::vector<Distance> distinct;
    for (const auto& row : distances) distinct.insert(distinct.end(), row.begin(), row.end());
    std::sort(distinct.begin(), distinct.end());
    distinct.erase(std::unique(distinct.begin(), distinct.end()), distinct.end());

    CostTable table;
    for (const auto& row : distances) {
        auto& out = table.emplace_back();
        for (const auto& entry : row) {
            const auto at = std::lower_bound(distinct.begin(), distinct.end(), entry);
            out.push_back({entry.distance_class, static_cast<std::size_t>(at - distinct.begin())});
        }
    }
    return table;
}

DistanceClass nearest_class(const std::vector<CostEntry>& row) {
    const auto best = std::min_element(row.begin(), row.end(), [](const CostEntry& a, const CostEntry& b) {
        return a.distance_class < b.distance_class;
    });
    return best == row.end() ? DistanceClass::sys : best->distance_class;
}

}  // namespace npushmem::topology
