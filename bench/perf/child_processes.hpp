// SPDX-License-Identifier: BSD-3-Clause
// Starts other programs and waits for them.
#pragma once

#include <sys/types.h>

#include <string>
#include <vector>

#include "npushmem/plugin/status.hpp"

namespace npushmem::perf {

// The processes of one run. It waits for every started process, also when a later start fails.
class ChildProcesses {
public:
    ChildProcesses() = default;
    ChildProcesses(const ChildProcesses&) = delete;
    ChildProcesses& operator=(const ChildProcesses&) = delete;
    ~ChildProcesses();

    // arguments[0] is the program's path. The process inherits this process's input and output.
    Status start(const std::vector<std::string>& arguments);
    // Waits until all processes have ended. Returns the failure of the first one with a status other than 0.
    Status wait();

private:
    struct Child {
        pid_t process;
        std::string program;
    };
    std::vector<Child> children_;
};

}  // namespace npushmem::perf
