// Processes that the kernel has begun to end. It closes their files, which their peers can see, a while before they can
// be reaped; it marks them before both.
#pragma once

#include <string_view>

namespace npushmem::run {

// `stat`: the text of /proc/<pid>/stat.
bool is_exiting(std::string_view stat);
// False when there is no such process.
bool is_exiting(int pid);

}  // namespace npushmem::run
