// SPDX-License-Identifier: BSD-3-Clause
#include "bench/perf/child_processes.hpp"

#include <fmt/format.h>
#include <spawn.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cerrno>
#include <cstring>
#include <string_view>

namespace npushmem::perf {
namespace {

std::string describe(int status) {
    if (WIFSIGNALED(status)) return fmt::format("was ended by signal {}", WTERMSIG(status));
    return fmt::format("ended with status {}", WEXITSTATUS(status));
}

}  // namespace

ChildProcesses::~ChildProcesses() { (void)wait(); }

Status ChildProcesses::start(const std::vector<std::string>& arguments) {
    std::vector<char*> pointers;
    for (const std::string& argument : arguments) pointers.push_back(const_cast<char*>(argument.c_str()));
    pointers.push_back(nullptr);
    pid_t process = 0;
    const int error = posix_spawn(&process, pointers[0], nullptr, nullptr, pointers.data(), environ);
    if (error != 0) return {Code::system, fmt::format("cannot start '{}': {}", arguments[0], std::strerror(error))};
    children_.push_back({process, arguments[0]});
    return {};
}

Status ChildProcesses::wait() {
    Status first;
    for (const Child& child : children_) {
        int status = 0;
        while (waitpid(child.process, &status, 0) < 0 && errno == EINTR) {
        }
        if (status != 0 && first.ok()) first = {Code::system, fmt::format("'{}' {}", child.program, describe(status))};
    }
    children_.clear();
    return first;
}

}  // namespace npushmem::perf
