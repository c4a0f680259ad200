// Runs a job: sets the process-wide state that a launcher needs, and forks the supervisor.
#pragma once

#include "core/tools/run/job_preparation.hpp"
#include "core/tools/run/options.hpp"

namespace npushmem::run {

// Call it while the process has one thread. Blocks the signals that are forwarded, raises the limit of open files, and
// makes the process a subreaper, so that the process can do nothing but this job afterwards. Returns the exit status;
// it does not return in the supervisor's process.
int run_job(const Options& options, JobPlan plan);

}  // namespace npushmem::run
