// SPDX-License-Identifier: BSD-3-Clause
// npushmem-run --npu-check: jobs whose kernels are checked.
#pragma once

#include "core/tools/run/options.hpp"

namespace npushmem::run {

// Whether the schedule needs a scheduler for the kernels of all PEs: all but eager and lazy.
bool needs_scheduler(const Options& options);

// Runs the job once for each schedule that `options.npu_check` asks for, and grants the steps of its kernels. Shows the
// output of the last run that fails, or of the last run if none fails, and then a report. Returns the exit status.
int run_scheduled_job(Options options, const char* const* environment);

}  // namespace npushmem::run
