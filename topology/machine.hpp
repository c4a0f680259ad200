// A machine as a plain value: everything that distances, NIC assignment and binding need, and nothing that changes.
// discovery.hpp fills it from the running system or from a file; all else in this folder is a function of it.
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "topology/accelerator.hpp"
#include "topology/cpu.hpp"
#include "topology/nic.hpp"
#include "topology/pci_object.hpp"

namespace npushmem::topology {

struct Machine {
    std::string source;          // "this machine", or the file it was read from
    std::uint64_t identity = 0;  // 0: this machine; otherwise a hash of the file's content
    std::string host_name;       // empty when unknown
    std::vector<Package> packages;
    std::vector<NumaNode> numa_nodes;
    std::vector<Core> cores;
    std::vector<Cache> caches;              // of levels 3 and 2, in this order
    std::vector<PciObject> pci;             // every parent before its children
    std::vector<Nic> nics;                  // rdma before network, then by PCI address, then by name
    std::vector<Accelerator> accelerators;  // by PCI address
    std::vector<NpuSite> npu_sites;         // by number of the NPU; empty: nobody said, see place_emulated
    // [from][to], 10 means local, as firmware reports it; empty when it does not.
    std::vector<std::vector<std::uint32_t>> numa_distances;
    bool devices_known = true;       // false: discovery was asked for processors only (Detail::cpus)
    std::vector<std::string> notes;  // what discovery could not see, as sentences for people
};

// Index of the PCI device with this address ("0000:3b:00.0"; the domain may be left out, upper or lower case).
std::optional<std::size_t> find_pci(const Machine& machine, std::string_view address);

// Relative distance of two NUMA nodes (10 = same). Where firmware says nothing: 10 for the same node, 12 for nodes of
// one package, 21 otherwise.
std::uint32_t numa_distance(const Machine& machine, std::size_t from, std::size_t to);

// Number of hardware threads.
std::size_t cpu_count(const Machine& machine);

}  // namespace npushmem::topology
