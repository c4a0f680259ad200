#include "core/base/wait_os.hpp"

#include <linux/futex.h>
#include <sched.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

namespace npushmem {
namespace {

timespec timespec_of(std::chrono::nanoseconds time) {
    constexpr long billion = 1'000'000'000;
    return {static_cast<time_t>(time.count() / billion), static_cast<long>(time.count() % billion)};
}

}  // namespace

std::chrono::nanoseconds SystemWaitOs::now() { return std::chrono::steady_clock::now().time_since_epoch(); }

void SystemWaitOs::yield() { sched_yield(); }

void SystemWaitOs::sleep(std::chrono::nanoseconds time) {
    const timespec request = timespec_of(time);
    clock_nanosleep(CLOCK_MONOTONIC, 0, &request, nullptr);
}

// Not the private kind of futex: the sleepers are other processes, to which the kernel knows the word by file and
// offset.
void SystemWaitOs::sleep_on(std::uint32_t* word, std::uint32_t expected, std::chrono::nanoseconds longest) {
    const timespec limit = timespec_of(longest);
    syscall(SYS_futex, word, FUTEX_WAIT, expected, &limit, nullptr, 0);
}

}  // namespace npushmem
