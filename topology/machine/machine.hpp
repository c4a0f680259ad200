// SPDX-License-Identifier: BSD-3-Clause
// A machine as a plain value: processors, PCI objects, NICs and accelerators. discovery.hpp fills it from the running
// system or from a file; distances, NIC assignment and binding are functions of it.
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace npushmem::topology {

// Operating-system numbers of hardware threads, ascending, without duplicates.
using CpuSet = std::vector<unsigned>;

// "0-3,8" for {0,1,2,3,8}; "none" for an empty set.
std::string describe(const CpuSet& cpus);

struct Package {
    unsigned os_index = 0;
    std::string model;  // empty when the system does not report it
    CpuSet cpus;
};

struct NumaNode {
    unsigned os_index = 0;
    std::uint64_t memory_bytes = 0;
    std::optional<std::size_t> package;  // index into Machine::packages; none when the node spans several
    CpuSet cpus;
};

struct Core {
    std::optional<std::size_t> package;  // index into Machine::packages
    std::optional<std::size_t> numa;     // index into Machine::numa_nodes
    CpuSet cpus;                         // its hardware threads
};

struct Cache {
    unsigned level = 0;
    std::uint64_t bytes = 0;
    CpuSet cpus;  // the hardware threads that share it
};

enum class PciKind : std::uint8_t { host_bridge, bridge, device };

// One node of the machine's PCI forest. Host bridges are the roots: they connect a PCI tree to a processor.
struct PciObject {
    PciKind kind = PciKind::device;
    std::optional<std::size_t> parent;  // index into Machine::pci, always smaller than the own one; none for a root
    std::optional<std::size_t> numa;    // index into Machine::numa_nodes; none when the system does not report it
    std::string address;                // "0000:3b:00.0"; of a host bridge the bus range, "0000:[3a-41]"
    std::uint16_t class_id = 0;         // PCI class and subclass, for instance 0x1200
    std::uint16_t vendor = 0;
    std::uint16_t device = 0;
    std::uint64_t link_bits_per_second = 0;  // of the link to the parent; 0 when unknown
};

// rdma: a verbs device (mlx5_0). network: an interface of the kernel's network stack (eth0).
enum class NicKind : std::uint8_t { rdma, network };

enum class PortState : std::uint8_t { unknown, down, active };

// "active", "down", "state unknown".
std::string_view name_of(PortState state);

struct NicPort {
    unsigned number = 1;  // the system's number, from 1
    PortState state = PortState::unknown;
    std::uint64_t bits_per_second = 0;  // 0 when unknown
};

struct Nic {
    std::string name;
    NicKind kind = NicKind::network;
    std::optional<std::size_t> pci;   // index into Machine::pci
    std::optional<std::size_t> numa;  // index into Machine::numa_nodes
    std::vector<NicPort> ports;       // at least one
};

struct Accelerator {
    std::size_t pci = 0;              // index into Machine::pci
    std::optional<std::size_t> numa;  // index into Machine::numa_nodes
};

// True for a "processing accelerator" of any vendor, and for display classes of vendors whose server accelerators use
// them.
bool is_accelerator(std::uint16_t class_id, std::uint16_t vendor);

// The place that a topology file gives an emulated NPU; unknown without either member.
struct NpuSite {
    std::optional<std::size_t> pci;   // index into Machine::pci
    std::optional<std::size_t> numa;  // index into Machine::numa_nodes
};

struct Machine {
    std::string source;          // "this machine", or the file it was read from
    std::uint64_t identity = 0;  // 0: this machine; otherwise a hash of the file's content
    std::string host_name;       // empty when unknown
    std::vector<Package> packages;
    std::vector<NumaNode> numa_nodes;
    std::vector<Core> cores;
    std::vector<Cache> caches;              // level 3 before level 2
    std::vector<PciObject> pci;             // every parent before its children
    std::vector<Nic> nics;                  // rdma before network, then by PCI address, then by name
    std::vector<Accelerator> accelerators;  // by PCI address
    std::vector<NpuSite> npu_sites;         // by NPU number; empty: the file places none, see place_emulated
    // [from][to], 10 means local, as firmware reports it; empty when firmware reports none.
    std::vector<std::vector<std::uint32_t>> numa_distances;
    bool devices_known = true;       // false: discovery read processors only (Detail::cpus)
    std::vector<std::string> notes;  // sentences for people about what discovery could not read
};

// Index of the PCI device with this address ("0000:3b:00.0"; the domain may be omitted; case does not matter).
std::optional<std::size_t> find_pci(const Machine& machine, std::string_view address);

// Relative distance of two NUMA nodes (10 = same). Without a number from firmware: 10 for the same node, 12 for nodes
// of one package, 21 otherwise.
std::uint32_t numa_distance(const Machine& machine, std::size_t from, std::size_t to);

// Number of hardware threads.
std::size_t cpu_count(const Machine& machine);

// Orders names as people count: mlx5_2 before mlx5_10. Strict weak order: runs of digits compare as numbers of any
// length, all other characters byte by byte.
bool natural_less(std::string_view a, std::string_view b);

}  // namespace npushmem::topology
