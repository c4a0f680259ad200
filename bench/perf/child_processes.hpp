// Other programs, started and waited for.
#pragma once

#include <sys/types.h>

#include <string>
#include <vector>

#include "npushmem/plugin/status.hpp"

namespace npushmem::perf {

// The processes of one run; whatever was started is waited for, also when starting a later one failed.
class ChildProcesses {
public:
    ChildProcesses() = default;
    ChildProcesses(const ChildProcesses&) = delete;
    ChildProcesses& operator=(const ChildProcesses&) = delete;
    ~ChildProcesses();

    // arguments[0] is the program's path. Its input and output are this process's.
    Status start(const std::vector<std::string>& arguments);
    // Until all have ended; the failure is that of the first that ended with another status than 0.
    Status wait();

private:
    struct Child {
        pid_t process;
        std::string program;
    };
    std::vector<Child> children_;
};

}  // namespace npushmem::perf
