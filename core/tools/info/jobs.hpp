// SPDX-License-Identifier: BSD-3-Clause
// The running jobs of this user on this host, read from their shared memory. Reading changes nothing in a job.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "core/base/liveness.hpp"
#include "core/runtime/wait_report.hpp"
#include "npushmem/plugin/status.hpp"

namespace npushmem::info {

struct PeInProgress {
    int process = 0;
    PeProgress progress;
};

// A job, or its PEs on this host.
struct JobInProgress {
    std::string program;  // name of the first PE's program; empty: it has ended
    int npes = 0;
    ProcessId first;  // the process of PE 0, which identifies the job
    std::vector<PeInProgress> pes;
};

struct JobsReport {
    std::int64_t now = 0;  // CLOCK_MONOTONIC in nanoseconds
    std::vector<JobInProgress> jobs;
    std::vector<std::string> notes;  // sentences about what was not read
};

// Adds the PEs of the segment behind the descriptor to `jobs`: to a known job, or to a new one. Does nothing if the
// file is no symmetric memory. Fails if it cannot be read as such; the message begins with "its".
Status read_segment(int descriptor, std::vector<JobInProgress>& jobs);

// Examines the open files of this user's processes. A process that ends meanwhile is skipped.
JobsReport find_jobs();

// "waiting", "running", "starting", "finalized" or "ended".
std::string state_text(const PeProgress& pe);
std::vector<std::string> disagreements_of(const JobInProgress& job);

std::string describe(const JobsReport& report);

}  // namespace npushmem::info
