// SPDX-License-Identifier: BSD-3-Clause
// Checked mode for the device of this process: NPUSHMEM_NPU_CHECK=1.
#pragma once

#include <chrono>

#include "npushmem/npu/checked_job.hpp"
#include "npushmem/npu/fabric.hpp"
#include "npushmem/npu/hooks.hpp"

namespace npushmem::npu {

// A launch in checked mode always has a deadline. This is the default when DeviceConfig::launch_timeout is 0, in a
// CheckedJob and in a running job.
inline constexpr std::chrono::seconds checked_launch_timeout{300};

// Returns the factory for DeviceConfig::hooks. Each launch is checked separately: its cores against each other, and its
// exchanges with other PEs as far as this process can see them. CheckedJob sees all PEs. The actions of PEs in other
// processes are detected by their traces in memory: a line cached before a wait that differs from memory afterwards
// (H7); a line written back over changed bytes (H9); bytes that changed while a copy that reads or writes them was
// queued (H13, H14). A copy or a store to a PE counts as unpublished (H8) if a signal to that PE overtakes it and no
// later signal announces it. The source line of the other PE is unknown in these findings.
//
// A launch with findings fails with Code::protocol and the findings, also when the kernel throws. Loops that poll keep
// wait_timeout. Commands run, and signals are sent, at the latest before a core waits.
//
// `fabric` must outlive the device; its window defines the symmetric memory. Returns Code::config for the schedules
// explore and replay, which need all PEs in one process.
NPUSHMEM_NPU_EXPORT Result<HooksFactory> checked_hooks(const Schedule& schedule, const Fabric& fabric);

}  // namespace npushmem::npu
