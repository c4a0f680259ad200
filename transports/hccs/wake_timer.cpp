#include "transports/hccs/wake_timer.hpp"

#include <fmt/format.h>
#include <sys/timerfd.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstdint>
#include <cstring>
#include <utility>

namespace npushmem::hccs {

Result<WakeTimer> WakeTimer::make() {
    const int timer = ::timerfd_create(CLOCK_MONOTONIC, TFD_CLOEXEC | TFD_NONBLOCK);
    if (timer < 0)
        return Status{Code::system, fmt::format("no timer for the engines' wake-up: {}", std::strerror(errno))};
    return WakeTimer(timer);
}

WakeTimer::WakeTimer(WakeTimer&& other) noexcept : timer_(std::exchange(other.timer_, -1)) {}

WakeTimer::~WakeTimer() {
    if (timer_ >= 0) ::close(timer_);
}

void WakeTimer::set(std::chrono::nanoseconds time) const {
    const auto count = std::max<std::int64_t>(time.count(), 1);  // 0 would mean never
    itimerspec when{};
    when.it_value.tv_sec = count / 1'000'000'000;
    when.it_value.tv_nsec = count % 1'000'000'000;
    (void)::timerfd_settime(timer_, TFD_TIMER_ABSTIME, &when, nullptr);
}

void WakeTimer::clear() const {
    std::uint64_t rings = 0;
    (void)!::read(timer_, &rings, sizeof rings);
}

}  // namespace npushmem::hccs
