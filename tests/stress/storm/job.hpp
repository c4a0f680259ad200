// SPDX-License-Identifier: BSD-3-Clause
// One job with its fault: started, watched until nothing of it is left, and described for the verdict.
#pragma once

#include <chrono>
#include <map>
#include <set>
#include <string>
#include <vector>

#include "tests/stress/storm/fault.hpp"

namespace npushmem::storm {

struct Programs {
    std::string pe;
    std::string run;  // npushmem-run
};

struct JobResult {
    int status = 0;                    // exit status of the launcher, or 128 + signal
    std::string skipped;               // why the limit of the job is not possible here; empty: it is
    std::string output;                // standard output and standard error of all processes
    std::map<int, int> pids;           // of PEs that reported
    std::set<int> injected;            // PEs that reported the fault
    std::set<int> verified;            // PEs whose results were right
    std::set<int> finalized;           // PEs that returned from npushmem_finalize
    std::chrono::nanoseconds took{0};  // from the fault to the end of the last process
    std::chrono::seconds stall_limit{0};
    bool ended_by_storm = false;  // it did not end within the limit
    bool cut = false;             // a PE has cut a connection
    bool exit_waits_for_libc =
        false;                      // when the storm ended it, a PE with the fault waited for a lock of the C library
    std::vector<std::string> left;  // processes after the launcher, files, sockets
};

// Runs the job. The calling process is a child subreaper without other children. `folder`: for temporary files, empty.
// `stall_limit`: its processes should end within this time after the fault; some seconds later the storm ends them.
// `is_private`: every file in /dev/shm and every socket is the job's; otherwise only names of npushmem count.
JobResult run_job(const Programs& programs, const Fault& fault, const std::string& folder,
                  std::chrono::seconds stall_limit, bool is_private);

}  // namespace npushmem::storm
