#include "core/base/wait_os.hpp"

#include <sched.h>
#include <time.h>

namespace npushmem {

std::chrono::nanoseconds SystemWaitOs::now() { return std::chrono::steady_clock::now().time_since_epoch(); }

void SystemWaitOs::yield() { sched_yield(); }

void SystemWaitOs::sleep(std::chrono::nanoseconds time) {
    constexpr long billion = 1'000'000'000;
    const timespec request{static_cast<time_t>(time.count() / billion), static_cast<long>(time.count() % billion)};
    clock_nanosleep(CLOCK_MONOTONIC, 0, &request, nullptr);
}

}  // namespace npushmem
