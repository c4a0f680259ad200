// Ends every process below the calling one, which must be a child subreaper: orphans then become its children, so that
// none can leave, whatever group or session it has moved to.
#pragma once

#include <chrono>

namespace npushmem::run {

// Kills and reaps until the calling process has no children. False: some are still there after `limit` (a process in
// an uninterruptible system call).
bool kill_descendants(std::chrono::milliseconds limit);

}  // namespace npushmem::run
