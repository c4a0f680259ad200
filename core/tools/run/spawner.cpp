#include "core/tools/run/spawner.hpp"

#include <fcntl.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

#include <array>
#include <cerrno>

#include "core/tools/run/pidfd.hpp"

namespace npushmem::run {
namespace {

// A step of the child that failed, as it travels through the pipe that execve closes.
struct Failure {
    int error = 0;
    const char* attempt = nullptr;  // a literal, so that its address is the same in both processes
};

// From here to execve the child shares the parent's memory (vfork): it may only make system calls.
[[noreturn]] void report_and_exit(int report_to, const char* attempt) {
    const Failure failure{errno, attempt};
    (void)!::write(report_to, &failure, sizeof failure);
    ::_exit(127);
}

// Makes `from` descriptor `to` without close-on-exec. The numbers 0 to 2 are always in use here, so no descriptor that
// is still needed lies below 3 except the launcher's own three, which are taken in this order.
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
    const Fd report(ends[0]);
    Fd report_to(ends[1]);
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
    if (!out.process.open()) out.error = errno, out.attempt = "pidfd_open";
    return out;
}

}  // namespace npushmem::run
