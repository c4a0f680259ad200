// Where the process of a PE should run, seen from the device that it drives.
#pragma once

#include <cstddef>
#include <vector>

#include "npushmem/plugin/status.hpp"
#include "topology/cpu.hpp"
#include "topology/machine.hpp"

namespace npushmem::topology {

// For each of this many NPUs of a host (see place_emulated) the CPUs near its device: those of the device's NUMA node
// or, where that is unknown, of the NUMA node of the NIC that its PE would use; all, where neither is known. NPUs near
// the same node share its cores equally, and take them in turn when there are more NPUs than cores. Nothing outside
// `allowed`, what the user lets this job use, is ever given. Fails with Code::config when near some device there is no
// such CPU.
Result<std::vector<std::vector<int>>> cpus_near_devices(const Machine& machine, std::size_t npus,
                                                        const CpuSet& allowed);

}  // namespace npushmem::topology
