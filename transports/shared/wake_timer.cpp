// SPDX-License-Identifier: BSD-3-Clause
#include "transports/shared/wake_timer.hpp"

#include <fmt/format.h>
#include <sys/timerfd.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstdint>
#include <cstring>
#include <utility>

namespace npushmem {

Result<WakeTimer> WakeTimer::make() {
    FileDescriptor timer(::timerfd_create(CLOCK_MONOTONIC, TFD_CLOEXEC | TFD_NONBLOCK));
    if (!timer.valid())
        return Status{Code::system,
                      fmt::format("cannot create the timer that wakes the progress thread: {}", std::strerror(errno))};
    return WakeTimer(std::move(timer));
}

void WakeTimer::set(std::chrono::nanoseconds time) const {
    const auto count = std::max<std::int64_t>(time.count(), 1);  // 0 would disarm the timer
    itimerspec when{};
    when.it_value.tv_sec = count / 1'000'000'000;
    when.it_value.tv_nsec = count % 1'000'000'000;
    (void)::timerfd_settime(timer_.get(), TFD_TIMER_ABSTIME, &when, nullptr);
}

void WakeTimer::clear() const {
    std::uint64_t rings = 0;
    (void)!::read(timer_.get(), &rings, sizeof rings);
}

}  // namespace npushmem
