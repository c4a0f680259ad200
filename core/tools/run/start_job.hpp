// From a plan to a running job: the process-wide state that a launcher needs, and the fork of the supervisor.
#pragma once

#include "core/tools/run/job_preparation.hpp"
#include "core/tools/run/options.hpp"

namespace npushmem::run {

// Must be called while the process has one thread. Blocks the signals that are forwarded, raises the limit of open
// files, and becomes a subreaper: the process is good for nothing but this job afterwards. Returns the exit status; in
// the supervisor's process it does not return.
int run_job(const Options& options, JobPlan plan);

}  // namespace npushmem::run
