// SPDX-License-Identifier: BSD-3-Clause
#include "core/tools/run/processes.hpp"

#include <fcntl.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

#include <array>
#include <cerrno>
#include <csignal>
#include <cstdio>
#include <cstring>
#include <fstream>
#include <memory>
#include <string>
#include <thread>
#include <vector>

#include "core/base/liveness.hpp"

namespace npushmem::run {

namespace {

// A step of the child that failed; it is sent through the pipe that execve closes.
struct Failure {
    int error = 0;
    const char* attempt = nullptr;  // a literal, so that its address is the same in both processes
};

// Until execve the child shares the parent's memory (vfork), so it may only make system calls.
[[noreturn]] void report_and_exit(int report_to, const char* attempt) {
    const Failure failure{errno, attempt};
    (void)!::write(report_to, &failure, sizeof failure);
    ::_exit(127);
}

// Duplicates `from` as `to` without close-on-exec. Descriptors 0 to 2 are always open here, so `from` is 3 or more or
// one of the launcher's standard descriptors, which are duplicated in this order.
bool place(int from, int to) {
    if (from == to) return ::fcntl(to, F_SETFD, 0) == 0;
    return ::dup2(from, to) == to;
}

[[noreturn]] void exec_program(const SpawnRequest& request, int parent, int report_to) {
    if (::setpgid(0, 0) != 0) report_and_exit(report_to, "setpgid");
    if (::prctl(PR_SET_PDEATHSIG, SIGKILL) != 0) report_and_exit(report_to, "prctl(PR_SET_PDEATHSIG)");
    if (::getppid() != parent) ::_exit(127);  // the parent died before the line above
    if (!place(request.input, 0)) report_and_exit(report_to, "giving it its standard input");
    if (!place(request.output, 1)) report_and_exit(report_to, "giving it its standard output");
    if (!place(request.errors, 2)) report_and_exit(report_to, "giving it its standard error");
    if (request.cpus != nullptr && ::sched_setaffinity(0, request.cpus_bytes, request.cpus) != 0)
        report_and_exit(report_to, "binding it to CPUs");
    if (::sigprocmask(SIG_SETMASK, request.signal_mask, nullptr) != 0) report_and_exit(report_to, "sigprocmask");
    ::execve(request.program, request.arguments, request.environment);
    report_and_exit(report_to, "execve");
}

int start(const SpawnRequest& request, int parent, int report_to) {
    const int pid =
        ::vfork();  // NOLINT(clang-analyzer-security.insecureAPI.vfork): exec_program() makes system calls only
    if (pid == 0) exec_program(request, parent, report_to);
    return pid;
}

Spawned failed(int error, const char* attempt) {
    Spawned out;
    out.error = error;
    out.attempt = attempt;
    return out;
}

}  // namespace

Spawned spawn(const SpawnRequest& request) {
    std::array<int, 2> ends{};
    if (::pipe2(ends.data(), O_CLOEXEC) != 0) return failed(errno, "pipe");
    const FileDescriptor report(ends[0]);
    FileDescriptor report_to(ends[1]);
    Spawned out;
    out.pid = start(request, ::getpid(), report_to.get());
    if (out.pid < 0) return failed(errno, "vfork");
    report_to.reset();
    Failure failure;
    if (::read(report.get(), &failure, sizeof failure) == static_cast<ssize_t>(sizeof failure)) {
        (void)::waitpid(out.pid, nullptr, 0);
        return failed(failure.error, failure.attempt);
    }
    out.process = open_pidfd(out.pid);
    if (!out.process.valid()) out.error = errno, out.attempt = "pidfd_open";
    return out;
}

namespace {

constexpr unsigned exiting_flag = 0x4;  // PF_EXITING of the kernel, in the field `flags` of proc(5)

}  // namespace

// The name in the second field may contain blanks and brackets, so fields are counted from its end.
bool is_exiting(std::string_view stat) {
    const auto name_end = stat.rfind(')');
    if (name_end == std::string_view::npos) return false;
    const std::string after_name(stat.substr(name_end + 1));
    unsigned flags = 0;
    return std::sscanf(after_name.c_str(), " %*c %*d %*d %*d %*d %*d %u", &flags) == 1 && (flags & exiting_flag) != 0;
}

bool is_exiting(int pid) {
    std::ifstream file("/proc/" + std::to_string(pid) + "/stat");
    std::string text;
    return std::getline(file, text) && is_exiting(text);
}

namespace {

using File = std::unique_ptr<std::FILE, decltype([](std::FILE* file) { std::fclose(file); })>;

// Returns the parent of a process, or -1. The name in /proc/<pid>/stat may contain blanks and brackets, so fields are
// counted from the last bracket.
int parent_of(int pid) {
    const File file(std::fopen(("/proc/" + std::to_string(pid) + "/stat").c_str(), "re"));
    char text[512] = {};
    if (file == nullptr || std::fread(text, 1, sizeof text - 1, file.get()) == 0) return -1;
    const char* after_name = std::strrchr(text, ')');
    int parent = -1;
    if (after_name == nullptr || std::sscanf(after_name, ") %*c %d", &parent) != 1) return -1;
    return parent;
}

void kill_children() {
    const int self = ::getpid();
    for (const int pid : list_processes())
        if (parent_of(pid) == self) (void)::kill(pid, SIGKILL);
}

enum class Reaped { none_left, some, nothing_yet };

Reaped reap() {
    Reaped result = Reaped::nothing_yet;
    for (;;) {
        const int pid = ::waitpid(-1, nullptr, WNOHANG);
        if (pid < 0) return errno == ECHILD ? Reaped::none_left : result;
        if (pid == 0) return result;
        result = Reaped::some;
    }
}

}  // namespace

bool kill_descendants(std::chrono::milliseconds limit) {
    const auto end = std::chrono::steady_clock::now() + limit;
    auto pause = std::chrono::microseconds(100);
    for (bool first = true; std::chrono::steady_clock::now() < end; first = false) {
        const Reaped reaped = reap();
        if (reaped == Reaped::none_left) return true;
        // Children of the killed processes are now children of this process.
        if (reaped == Reaped::some || first)
            kill_children();
        else
            std::this_thread::sleep_for(pause = std::min(pause * 2, std::chrono::microseconds(5000)));
    }
    return reap() == Reaped::none_left;
}

}  // namespace npushmem::run
