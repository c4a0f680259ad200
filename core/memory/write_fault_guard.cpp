#include "core/memory/write_fault_guard.hpp"

#include <dirent.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <atomic>
#include <cerrno>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <string>
#include <string_view>
#include <system_error>

namespace npushmem {

namespace {

// What a signal handler can know is static. One at a time: start and end of the library hold its lock.
struct GuardedRange {
    // Release when set, acquire in the handler: `before` is complete when the range is seen.
    std::atomic<std::uintptr_t> begin{0};
    std::atomic<std::uint64_t> bytes{0};
    struct sigaction before {};
};

GuardedRange& guarded_range() {
    static constinit GuardedRange instance;
    return instance;
}

void on_fault(int signal, siginfo_t* info, void*) {
    GuardedRange& range = guarded_range();
    const std::uint64_t bytes = range.bytes.load(std::memory_order_acquire);
    const std::uintptr_t begin = range.begin.load(std::memory_order_relaxed);
    const auto address = reinterpret_cast<std::uintptr_t>(info->si_addr);
    const int error = errno;
    if (info->si_code == SEGV_ACCERR && address - begin < bytes) {
        syscall(SYS_sched_yield);  // the instruction is tried again on return
    } else {
        // The same again, with the one that is responsible.
        sigaction(signal, &range.before, nullptr);
        if (info->si_code <= 0) syscall(SYS_tgkill, getpid(), gettid(), signal);
    }
    errno = error;
}

// Has a thread met a page that was read-only, and not come to the handler yet?
bool has_pending_fault() {
    std::error_code gone;
    for (std::filesystem::directory_iterator task("/proc/self/task", gone), end; !gone && task != end;
         task.increment(gone)) {
        std::ifstream status(task->path() / "status");
        constexpr std::string_view field = "SigPnd:";
        for (std::string line; std::getline(status, line);)
            if (line.rfind(field, 0) == 0 &&
                (std::strtoull(line.c_str() + field.size(), nullptr, 16) >> (SIGSEGV - 1) & 1U) != 0)
                return true;
    }
    return false;
}

}  // namespace

WriteFaultGuard::WriteFaultGuard(std::uintptr_t begin, std::uint64_t bytes) {
    GuardedRange& range = guarded_range();
    // Bound now: a function that is called for the first time is looked up, and where it was found is written into a
    // page of the executable, if this code is part of it.
    const int error = errno;
    syscall(SYS_sched_yield);
    errno = error;
    range.begin.store(begin, std::memory_order_relaxed);
    range.bytes.store(bytes, std::memory_order_release);
    struct sigaction ours {};
    ours.sa_sigaction = on_fault;
    ours.sa_flags = SA_SIGINFO | SA_ONSTACK | SA_RESTART;
    sigemptyset(&ours.sa_mask);
    sigaction(SIGSEGV, &ours, &range.before);
}

// The program may have set a handler of its own meanwhile, which stays.
WriteFaultGuard::~WriteFaultGuard() {
    constexpr int max_polls = 10'000;  // a thread that a debugger has stopped never comes
    for (int i = 0; i < max_polls && has_pending_fault(); ++i) syscall(SYS_sched_yield);
    struct sigaction now {};
    sigaction(SIGSEGV, nullptr, &now);
    if (now.sa_sigaction == on_fault) sigaction(SIGSEGV, &guarded_range().before, nullptr);
    guarded_range().bytes.store(0, std::memory_order_release);
}

bool WriteFaultGuard::needed() {
    DIR* const tasks = opendir("/proc/self/task");
    if (tasks == nullptr) return true;
    int count = 0;
    while (readdir(tasks) != nullptr) ++count;
    closedir(tasks);
    constexpr int own_and_dots = 3;
    return count > own_and_dots;
}

}  // namespace npushmem
