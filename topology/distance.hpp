// How far two devices are apart: a class that people know from other tools, and a cost that orders paths of one class.
#pragma once

#include <compare>
#include <cstdint>
#include <optional>
#include <string_view>

#include "topology/machine.hpp"

namespace npushmem::topology {

// From near to far; the order of the enumerators is the order of nearness.
enum class DistanceClass : std::uint8_t {
    pix,   // one PCIe switch between them at most
    pxb,   // several PCIe switches, no host bridge
    phb,   // through the host bridge of one tree
    node,  // across host bridges of one NUMA node
    sys,   // across NUMA nodes, or at a place nobody knows
};

constexpr std::size_t distance_class_count = 5;

// "PIX", "PXB", "PHB", "NODE", "SYS".
std::string_view name_of(DistanceClass distance);
// What the path crosses, as the end of a sentence: "behind the same PCIe switch".
std::string_view path_of(DistanceClass distance);

// Where a device sits. Without `pci` only its NUMA node is known; without either, nothing is.
struct Location {
    std::optional<std::size_t> pci;   // index into Machine::pci: a device, a bridge or a host bridge
    std::optional<std::size_t> numa;  // index into Machine::numa_nodes
};

// Nearer is less: first the class, then the bandwidth of the narrowest known link (more is nearer; unknown, 0, is
// farthest), then the NUMA distance.
struct Distance {
    DistanceClass distance_class = DistanceClass::sys;
    std::uint64_t bits_per_second = 0;
    std::uint32_t numa_distance = 0;  // as numa_distance(); the largest number when a node is unknown

    friend bool operator==(const Distance&, const Distance&) = default;
    friend std::strong_ordering operator<=>(const Distance& a, const Distance& b);
};

// Symmetric. Locations must be of `machine`.
Distance distance(const Machine& machine, const Location& a, const Location& b);

// Lowers `narrowest` to a link's bits per second; 0 in either stands for unknown.
void narrow(std::uint64_t& narrowest, std::uint64_t link);

}  // namespace npushmem::topology
