// Checked mode for a device of a job whose processes share what their checkers record.
#pragma once

#include "core/npu/check/job_link.hpp"
#include "npushmem/npu/checked_hooks.hpp"

namespace npushmem::npu::check {

// As checked_hooks. `link` must outlive the device; null: each process checks for itself.
Result<HooksFactory> job_hooks(const Schedule& schedule, const Fabric& fabric, const JobLink* link);

}  // namespace npushmem::npu::check
