// What a PE reports to npushmem-run, if that started it.
#pragma once

#include "core/runtime/runtime.hpp"

namespace npushmem::api {

// "exit": the program ends the job with this status. False: there is no launcher, or it did not listen.
// `openshmem`: the program uses the names of OpenSHMEM, and so does the launcher's report.
bool report_exit(int status, bool openshmem);

// "failed": the library cannot serve this PE any more (its start failed, or a peer is lost), so the job cannot be a
// success whatever the program returns.
bool report_job_failure(int status);

// Calls of this PE that failed although the program cannot know it, or fewer again where it has asked after all: with
// one of them left the job is no success.
void report_failed_calls(int by);

// Ending the whole job from one PE.
// Tells the launcher if there is one, the bootstrap, and, without a launcher, the PEs of this host by signal; then
// exits with `status`. `runtime` may be null: then only this process ends.
[[noreturn]] void exit_job(Runtime* runtime, int status);

}  // namespace npushmem::api
