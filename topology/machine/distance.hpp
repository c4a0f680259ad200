// SPDX-License-Identifier: BSD-3-Clause
// The distance of two devices: a class as other tools print it, and a cost that orders paths of one class.
#pragma once

#include <compare>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <string_view>
#include <vector>

#include "topology/machine/machine.hpp"

namespace npushmem::topology {

// From near to far; the order of the enumerators is the order of distance.
enum class DistanceClass : std::uint8_t {
    pix,   // at most one PCIe switch between them
    pxb,   // several PCIe switches, no host bridge
    phb,   // through the host bridge of one tree
    node,  // across host bridges of one NUMA node
    sys,   // across NUMA nodes, or to an unknown place
};

constexpr std::size_t distance_class_count = 5;

// "PIX", "PXB", "PHB", "NODE", "SYS".
std::string_view name_of(DistanceClass distance);
// Describes the path, as the end of a sentence: "behind the same PCIe switch".
std::string_view path_of(DistanceClass distance);

// The place of a device. Without `pci` only its NUMA node is known; without either, nothing is.
struct Location {
    std::optional<std::size_t> pci;   // index into Machine::pci: a device, a bridge or a host bridge
    std::optional<std::size_t> numa;  // index into Machine::numa_nodes
};

// Nearer is less: first the class, then the bandwidth of the narrowest known link (more is nearer; 0, unknown, is
// farthest), then the NUMA distance.
struct Distance {
    DistanceClass distance_class = DistanceClass::sys;
    std::uint64_t bits_per_second = 0;
    std::uint32_t numa_distance = 0;  // as numa_distance(); the largest number when a node is unknown

    friend bool operator==(const Distance&, const Distance&) = default;
    friend std::strong_ordering operator<=>(const Distance& a, const Distance& b);
};

// Symmetric. Both locations are of `machine`.
Distance distance(const Machine& machine, const Location& a, const Location& b);

// Lowers `narrowest` to the link's bits per second; 0 in either means unknown.
void narrow(std::uint64_t& narrowest, std::uint64_t link);

// The input of the policies: one row per item to be placed, one column per bin. Lower is better: `distance_class`
// decides first, then `rank`, which also orders across classes.
struct CostEntry {
    DistanceClass distance_class = DistanceClass::sys;
    std::size_t rank = 0;
};

using CostTable = std::vector<std::vector<CostEntry>>;

// Replaces every distance by its rank among all distances in the table.
CostTable rank_distances(const std::vector<std::vector<Distance>>& distances);

// The best class of a row; `sys` for an empty one.
DistanceClass nearest_class(const std::vector<CostEntry>& row);

}  // namespace npushmem::topology
