// Where the devices of a host's PEs sit. An emulated NPU has no hardware, so that a rule gives it a place.
#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <vector>

#include "topology/distance.hpp"
#include "topology/machine.hpp"

namespace npushmem::topology {

struct DevicePlace {
    Location location;
    CpuSet cpus;               // hardware threads near it, for binding; empty when unknown
    std::string why;           // "emulated, stands in for accelerator 0000:0f:00.0"
    std::uint32_t number = 0;  // of the NPU among those of the host; the turn of its PE where turns decide
    std::uint32_t device = 0;  // of the physical device; NPUs that stand in for the same accelerator have the same
};

// The places of emulated NPUs 0..count-1 of one host, the same in every process. Rule: NPU i sits where
// the machine's file says, where it does (round robin); otherwise it stands in for accelerator
// i (round robin) where the machine has accelerators; otherwise it takes the next host bridge, the bridges of different
// NUMA nodes in turn; otherwise the next NUMA node. NPUs at one place take that place's cores in turn.
std::vector<DevicePlace> place_emulated(const Machine& machine, std::size_t count);

// The same of the NPUs with these numbers.
std::vector<DevicePlace> place_emulated(const Machine& machine, std::span<const std::uint32_t> numbers);

}  // namespace npushmem::topology
