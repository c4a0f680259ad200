#include "transports/hccs/doorbell.hpp"

#include <fmt/format.h>
#include <sys/timerfd.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstdint>
#include <cstring>
#include <utility>

namespace npushmem::hccs {

Result<Doorbell> Doorbell::make() {
    const int timer = ::timerfd_create(CLOCK_MONOTONIC, TFD_CLOEXEC | TFD_NONBLOCK);
    if (timer < 0)
        return Status{Code::system, fmt::format("no timer for the engines' doorbell: {}", std::strerror(errno))};
    return Doorbell(timer);
}

Doorbell::Doorbell(Doorbell&& other) noexcept : timer_(std::exchange(other.timer_, -1)) {}

Doorbell::~Doorbell() {
    if (timer_ >= 0) ::close(timer_);
}

void Doorbell::ring_at(std::chrono::nanoseconds time) const {
    const auto count = std::max<std::int64_t>(time.count(), 1);  // 0 would mean never
    itimerspec when{};
    when.it_value.tv_sec = count / 1'000'000'000;
    when.it_value.tv_nsec = count % 1'000'000'000;
    (void)::timerfd_settime(timer_, TFD_TIMER_ABSTIME, &when, nullptr);
}

void Doorbell::silence() const {
    std::uint64_t rings = 0;
    (void)!::read(timer_, &rings, sizeof rings);
}

}  // namespace npushmem::hccs
