// SPDX-License-Identifier: BSD-3-Clause
// CPUs for the processes of PEs: all that this process may use, or those near each PE's device.
#pragma once

#include <cstddef>
#include <vector>

#include "npushmem/plugin/status.hpp"
#include "topology/machine/machine.hpp"

namespace npushmem::topology {

enum class BindUnit { core, hwthread, numa };

// The operating system's CPU numbers of every core, hardware thread or NUMA node, in hwloc's logical order, restricted
// to the CPUs that this process may use; omits units without such a CPU. Fails when hwloc cannot discover the machine.
Result<std::vector<std::vector<int>>> allowed_units(BindUnit unit);

// The CPUs that this process may use. Fails with Code::system.
Result<CpuSet> own_cpus();

// The intersection of `cpus` and `allowed`, in the order of `cpus`.
std::vector<int> within(const CpuSet& cpus, const CpuSet& allowed);

// For each of `npus` NPUs of a host (see place_emulated), the CPUs near its device: those of the device's NUMA node; if
// that node is unknown, those of the NUMA node of the NIC that its PE would use; if both are unknown, all. NPUs near
// the same node share its cores equally, or take turns when there are more NPUs than cores. The result contains only
// CPUs of `allowed`, those that the user lets this job use. Fails with Code::config when a device has no such CPU near.
Result<std::vector<std::vector<int>>> cpus_near_devices(const Machine& machine, std::size_t npus,
                                                        const CpuSet& allowed);

}  // namespace npushmem::topology
