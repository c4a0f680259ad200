// A descriptor that becomes readable when a process ends. By system call: the C library's declaration lacks C linkage
// in Debian 12.
#pragma once

#include <sys/syscall.h>
#include <unistd.h>

#include "core/tools/run/fd.hpp"

namespace npushmem::run {

// Not open, with errno set, when there is no such process or no descriptor left.
inline Fd open_pidfd(int pid) { return Fd(static_cast<int>(::syscall(SYS_pidfd_open, pid, 0))); }

}  // namespace npushmem::run
