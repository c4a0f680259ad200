#include "core/memory/held_writes.hpp"

#include <dirent.h>
#include <sched.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <atomic>
#include <cerrno>

namespace npushmem {

namespace {

// What a signal handler can know is static. One at a time: start and end of the library hold its lock.
struct Held {
    // Release when set, acquire in the handler: `before` is complete when the range is seen.
    std::atomic<std::uintptr_t> begin{0};
    std::atomic<std::uint64_t> bytes{0};
    struct sigaction before {};
};

Held& held() {
    static constinit Held instance;
    return instance;
}

void on_fault(int signal, siginfo_t* info, void*) {
    Held& range = held();
    const std::uint64_t bytes = range.bytes.load(std::memory_order_acquire);
    const std::uintptr_t begin = range.begin.load(std::memory_order_relaxed);
    const auto address = reinterpret_cast<std::uintptr_t>(info->si_addr);
    const int error = errno;
    if (info->si_code == SEGV_ACCERR && address - begin < bytes) {
        sched_yield();  // the instruction is tried again on return
    } else {
        // The same again, with the one that is responsible.
        sigaction(signal, &range.before, nullptr);
        if (info->si_code <= 0) syscall(SYS_tgkill, getpid(), gettid(), signal);
    }
    errno = error;
}

}  // namespace

HeldWrites::HeldWrites(std::uintptr_t begin, std::uint64_t bytes) {
    Held& range = held();
    range.begin.store(begin, std::memory_order_relaxed);
    range.bytes.store(bytes, std::memory_order_release);
    struct sigaction ours {};
    ours.sa_sigaction = on_fault;
    ours.sa_flags = SA_SIGINFO | SA_ONSTACK | SA_RESTART;
    sigemptyset(&ours.sa_mask);
    sigaction(SIGSEGV, &ours, &range.before);
}

// The program may have set a handler of its own meanwhile, which stays.
HeldWrites::~HeldWrites() {
    struct sigaction now {};
    sigaction(SIGSEGV, nullptr, &now);
    if (now.sa_sigaction == on_fault) sigaction(SIGSEGV, &held().before, nullptr);
    held().bytes.store(0, std::memory_order_release);
}

bool HeldWrites::needed() {
    DIR* const tasks = opendir("/proc/self/task");
    if (tasks == nullptr) return true;
    int count = 0;
    while (readdir(tasks) != nullptr) ++count;
    closedir(tasks);
    constexpr int own_and_dots = 3;
    return count > own_and_dots;
}

}  // namespace npushmem
