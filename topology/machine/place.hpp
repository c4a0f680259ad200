// SPDX-License-Identifier: BSD-3-Clause
// Places the emulated NPUs of a host's PEs in the machine.
#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <vector>

#include "topology/machine/distance.hpp"
#include "topology/machine/machine.hpp"

namespace npushmem::topology {

struct DevicePlace {
    Location location;
    CpuSet cpus;               // hardware threads near it, for binding; empty when unknown
    std::string why;           // "emulated, stands in for accelerator 0000:0f:00.0"
    std::uint32_t number = 0;  // of the NPU among those of the host; decides the turn of its PE in round-robin policies
    std::uint32_t device = 0;  // of the physical device; NPUs that stand in for the same accelerator share it
};

// The places of emulated NPUs 0..count-1 of one host; every process computes the same. The first rule that applies:
//   the topology file places NPUs        NPU i takes the file's i-th place, round robin
//   the machine has accelerators         NPU i stands in for accelerator i, round robin
//   the machine has host bridges         NPU i takes the next host bridge, alternating between NUMA nodes
//   otherwise                            NPU i takes the next NUMA node
// NPUs at one place take the cores near it in turn.
std::vector<DevicePlace> place_emulated(const Machine& machine, std::size_t count);

// The places of the NPUs with these numbers.
std::vector<DevicePlace> place_emulated(const Machine& machine, std::span<const std::uint32_t> numbers);

}  // namespace npushmem::topology
