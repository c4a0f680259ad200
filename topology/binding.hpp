// The parts of this machine to which a process can be bound.
#pragma once

#include <vector>

#include "npushmem/plugin/status.hpp"
#include "topology/cpu.hpp"

namespace npushmem::topology {

enum class BindUnit { core, hwthread, numa };

// The operating system's CPU numbers of every core, hardware thread or NUMA node, in hwloc's logical order, limited to
// the CPUs that this process may use; units without any are left out. Fails when hwloc cannot look at the machine.
Result<std::vector<std::vector<int>>> allowed_units(BindUnit unit);

// The CPUs that this process may use. Fails with Code::system.
Result<CpuSet> own_cpus();

// Those of `cpus` that are in `allowed`, in their order.
std::vector<int> within(const CpuSet& cpus, const CpuSet& allowed);

}  // namespace npushmem::topology
