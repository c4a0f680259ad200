// Reports of a PE to npushmem-run, if that started it, and the end of the whole job.
#pragma once

#include "core/runtime/runtime.hpp"

namespace npushmem::api {

// "exit": the program ends the job with this status. Returns false if there is no launcher, or it does not listen.
// `openshmem`: the program uses the names of OpenSHMEM, and so does the launcher's report.
bool report_exit(int status, bool openshmem);

// "failed": the library cannot serve this PE any more (its start failed, or a peer is lost), so the job fails whatever
// the program returns.
bool report_job_failure(int status);

// Adds to the number of failed calls that the program has not queried; negative after a query. The job
// fails if any are left.
void report_failed_calls(int by);

// Ends the whole job from one PE: reports to the launcher if there is one, aborts the bootstrap, and without a launcher
// sends a signal to the PEs of this host; then exits with `status`. With a null `runtime` only this process ends.
[[noreturn]] void exit_job(Runtime* runtime, int status);

}  // namespace npushmem::api
