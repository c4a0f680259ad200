// SPDX-License-Identifier: BSD-3-Clause
#include "core/base/parking.hpp"

#include <linux/futex.h>
#include <sched.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

#include <algorithm>
#include <bit>
#include <climits>

namespace npushmem {

namespace {

timespec timespec_of(std::chrono::nanoseconds time) {
    constexpr long billion = 1'000'000'000;
    return {static_cast<time_t>(time.count() / billion), static_cast<long>(time.count() % billion)};
}

}  // namespace

std::chrono::nanoseconds SystemWaitOs::now() { return std::chrono::steady_clock::now().time_since_epoch(); }

std::chrono::nanoseconds SystemWaitOs::run_time() {
    timespec time{};
    (void)clock_gettime(CLOCK_THREAD_CPUTIME_ID, &time);
    return std::chrono::seconds{time.tv_sec} + std::chrono::nanoseconds{time.tv_nsec};
}

void SystemWaitOs::yield() { sched_yield(); }

void SystemWaitOs::sleep(std::chrono::nanoseconds time) {
    const timespec request = timespec_of(time);
    clock_nanosleep(CLOCK_MONOTONIC, 0, &request, nullptr);
}

// A shared futex: the sleepers are other processes, and the kernel identifies the word by file and offset.
void SystemWaitOs::sleep_on(std::uint32_t* word, std::uint32_t expected, std::chrono::nanoseconds longest) {
    const timespec limit = timespec_of(longest);
    syscall(SYS_futex, word, FUTEX_WAIT, expected, &limit, nullptr, 0);
}

std::uint32_t wake_sleepers_on(std::uint32_t* word, std::uint32_t count) {
    const int limit = static_cast<int>(std::min<std::uint32_t>(count, INT_MAX));
    const long woken = syscall(SYS_futex, word, FUTEX_WAKE, limit, nullptr, nullptr, 0);
    return woken > 0 ? static_cast<std::uint32_t>(woken) : 0;
}

std::uint32_t* FutexCounter::low_half() const {
    constexpr std::size_t offset = std::endian::native == std::endian::little ? 0 : sizeof(std::uint32_t);
    return reinterpret_cast<std::uint32_t*>(line_ + offset);
}

}  // namespace npushmem
