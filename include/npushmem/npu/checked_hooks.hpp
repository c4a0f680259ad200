// Checked mode for a device of its own process: NPUSHMEM_NPU_CHECK=1.
#pragma once

#include "npushmem/npu/checked_job.hpp"
#include "npushmem/npu/fabric.hpp"
#include "npushmem/npu/hooks.hpp"

namespace npushmem::npu {

// For DeviceConfig::hooks. Each launch is checked by itself: all its cores against each other, and what they take from
// and give to other PEs as far as this process sees it; CheckedJob sees all PEs. A launch in which something was found
// fails with Code::protocol and the findings. Commands run, and signals leave, at the latest before a core waits.
//
// `fabric` must outlive the device; its window is what is known to be symmetric memory. Code::config for the schedule
// explore, which needs all PEs in one process.
NPUSHMEM_NPU_EXPORT Result<HooksFactory> checked_hooks(const Schedule& schedule, const Fabric& fabric);

}  // namespace npushmem::npu
