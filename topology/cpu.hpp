// The processors of a machine, as plain values.
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <vector>

namespace npushmem::topology {

// Numbers of hardware threads as the operating system counts them, ascending, without repetition.
using CpuSet = std::vector<unsigned>;

struct Package {
    unsigned os_index = 0;
    std::string model;  // empty when the system does not say
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

// "0-3,8" for {0,1,2,3,8}; "none" for an empty set.
std::string describe(const CpuSet& cpus);

}  // namespace npushmem::topology
