// SPDX-License-Identifier: BSD-3-Clause
// For tests of a thread that waits in the kernel.
#pragma once

#include <sys/types.h>

#include <fstream>
#include <iterator>
#include <string>

namespace npushmem {

// Whether a thread of this process sleeps in a system call.
inline bool is_asleep(pid_t thread) {
    std::ifstream file("/proc/self/task/" + std::to_string(thread) + "/stat");
    const std::string text((std::istreambuf_iterator<char>(file)), std::istreambuf_iterator<char>());
    const auto behind_name = text.rfind(')');
    return behind_name != std::string::npos && text.substr(behind_name + 2, 1) == "S";
}

}  // namespace npushmem
