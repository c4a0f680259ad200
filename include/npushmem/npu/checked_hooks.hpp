// Checked mode for a device of its own process: NPUSHMEM_NPU_CHECK=1.
#pragma once

#include <chrono>

#include "npushmem/npu/checked_job.hpp"
#include "npushmem/npu/fabric.hpp"
#include "npushmem/npu/hooks.hpp"

namespace npushmem::npu {

// A launch in checked mode always has a deadline: this, where DeviceConfig::launch_timeout is 0 in a CheckedJob or in a
// running job.
inline constexpr std::chrono::seconds checked_launch_timeout{300};

// For DeviceConfig::hooks. Each launch is checked by itself: all its cores against each other, and what they take from
// and give to other PEs as far as this process sees it; CheckedJob sees all PEs. What PEs of other processes do shows
// by its traces in memory: a line cached before a wait that memory differs from afterwards (H7), a line written back
// over bytes that changed (H9), bytes that changed while a copy that reads or writes them was queued (H13, H14); and a
// copy or a store to a PE that a signal to it overtakes, and that no later signal announces, is one not published (H8).
// The other PE's line of source is not known then. A launch in which something was found fails with Code::protocol and
// the findings, also when the kernel throws. Loops that poll keep wait_timeout. Commands run, and signals leave, at the
// latest before a core waits.
//
// `fabric` must outlive the device; its window is what is known to be symmetric memory. Code::config for the schedule
// explore, which needs all PEs in one process.
NPUSHMEM_NPU_EXPORT Result<HooksFactory> checked_hooks(const Schedule& schedule, const Fabric& fabric);

}  // namespace npushmem::npu
