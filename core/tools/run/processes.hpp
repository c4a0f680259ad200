// SPDX-License-Identifier: BSD-3-Clause
// System calls on processes: start one, wait for its end, find those that are exiting, kill all descendants.
#pragma once

#include <sched.h>
#include <unistd.h>

#include <algorithm>
#include <chrono>
#include <csignal>
#include <string_view>
#include <vector>

#include "core/base/liveness.hpp"

namespace npushmem::run {

// Describes the new process. The caller keeps ownership of all pointers.
struct SpawnRequest {
    const char* program = nullptr;
    char* const* arguments = nullptr;
    char* const* environment = nullptr;
    int input = 0;  // becomes descriptor 0, 1, 2
    int output = 1;
    int errors = 2;
    const cpu_set_t* cpus = nullptr;  // null: not bound
    std::size_t cpus_bytes = 0;
    const sigset_t* signal_mask = nullptr;
};

struct Spawned {
    int pid = -1;
    FileDescriptor process;         // pidfd
    int error = 0;                  // errno of the step that failed; then there is no process
    const char* attempt = nullptr;  // that step in words
};

// Starts one process by vfork. It leads its own process group and dies with the calling thread (PR_SET_PDEATHSIG).
Spawned spawn(const SpawnRequest& request);

// Has the kernel begun to end the process? The kernel marks a process, then closes its files, which its peers can see,
// and lets it be reaped a while later.
// `stat`: the text of /proc/<pid>/stat.
bool is_exiting(std::string_view stat);
// False when there is no such process.
bool is_exiting(int pid);

// Kills and reaps until the calling process has no children. The caller must be a child subreaper: orphans then become
// its children, whatever group or session they have moved to. False: some are left after `limit` (a process in an
// uninterruptible system call).
bool kill_descendants(std::chrono::milliseconds limit);
// Returns a limit for a job of this size. The kernel needs some milliseconds of a core to free a PE.
constexpr std::chrono::milliseconds kill_limit(int pes) {
    constexpr std::chrono::milliseconds longest{60'000};
    return std::min(std::chrono::milliseconds(3000) + pes * std::chrono::milliseconds(20), longest);
}

}  // namespace npushmem::run
