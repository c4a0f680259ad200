// System calls on processes: start one, wait for its end, find those that are exiting, kill all descendants.
#pragma once

#include <sched.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <chrono>
#include <csignal>
#include <string_view>
#include <vector>

#include "core/tools/run/fd.hpp"

namespace npushmem::run {

// Starts one process at the cost of a vfork: in a process group of its own, bound to the life of the process that
// calls.

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

// A descriptor that becomes readable when a process ends. By system call: the C library's declaration lacks C linkage
// in Debian 12.

// Not open, with errno set, when there is no such process or no descriptor left.
inline Fd open_pidfd(int pid) { return Fd(static_cast<int>(::syscall(SYS_pidfd_open, pid, 0))); }

// Processes that the kernel has begun to end. It closes their files, which their peers can see, a while before they can
// be reaped; it marks them before both.

// `stat`: the text of /proc/<pid>/stat.
bool is_exiting(std::string_view stat);
// False when there is no such process.
bool is_exiting(int pid);

// Ends every process below the calling one, which must be a child subreaper: orphans then become its children, so that
// none can leave, whatever group or session it has moved to.

// Kills and reaps until the calling process has no children. False: some are still there after `limit` (a process in
// an uninterruptible system call).
bool kill_descendants(std::chrono::milliseconds limit);

}  // namespace npushmem::run
