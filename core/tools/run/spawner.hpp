// Starts one process at the cost of a vfork: in a process group of its own, bound to the life of the process that
// calls.
#pragma once

#include <sched.h>

#include <csignal>
#include <vector>

#include "core/tools/run/fd.hpp"

namespace npushmem::run {

// What the new process is to be. All pointers stay the caller's.
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
    Fd process;                     // pidfd
    int error = 0;                  // errno of the step that failed; the process does not exist then
    const char* attempt = nullptr;  // that step in words
};

// The new process leads its own process group and dies with the calling thread (PR_SET_PDEATHSIG).
Spawned spawn(const SpawnRequest& request);

}  // namespace npushmem::run
