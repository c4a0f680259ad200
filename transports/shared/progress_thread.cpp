// SPDX-License-Identifier: BSD-3-Clause
#include "transports/shared/progress_thread.hpp"

#include <fmt/format.h>
#include <poll.h>
#include <sys/eventfd.h>
#include <unistd.h>

#include <array>
#include <cerrno>
#include <cstdint>
#include <cstring>
#include <utility>

#include "core/base/service_thread.hpp"

namespace npushmem {
namespace {

using Clock = std::chrono::steady_clock;

// The wait while the program drives the transport, or without a descriptor.
constexpr std::chrono::milliseconds brief_wait{1};
constexpr std::chrono::milliseconds no_time{0};

constexpr std::chrono::milliseconds rate_interval{1};
// A wait drives often at first, then sleeps: after a longer sleep on the descriptor the calls may all be long ago.
constexpr std::uint64_t max_intervals = 4;

class CallRate {
public:
    explicit CallRate(std::uint64_t driven) : driven_(driven), at_(Clock::now()) {}

    // Other threads have driven it often since the last check. `slept`: this thread slept on the descriptor meanwhile.
    bool busy(std::uint64_t driven, bool slept) {
        const auto now = Clock::now();
        const std::uint64_t more = driven - driven_;
        if (now - at_ < rate_interval) return more >= ProgressThread::busy_calls;
        const auto intervals = static_cast<std::uint64_t>((now - at_) / rate_interval);
        driven_ = driven;
        at_ = now;
        return more >= ProgressThread::busy_calls * intervals && !(slept && intervals > max_intervals);
    }

private:
    std::uint64_t driven_;
    Clock::time_point at_;
};

}  // namespace

Result<std::unique_ptr<ProgressThread>> ProgressThread::start(Work work) {
    const int stop = ::eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK);
    if (stop < 0)
        return Status{Code::system,
                      fmt::format("cannot create an eventfd for the progress thread: {}", std::strerror(errno))};
    std::unique_ptr<ProgressThread> out(new ProgressThread(std::move(work), stop));
    auto thread = start_service_thread("npushmem-net", [thread = out.get()] { thread->run(); });
    if (!thread.ok()) return thread.status();
    out->thread_ = std::move(thread).value();
    return out;
}

ProgressThread::~ProgressThread() {
    const std::uint64_t one = 1;
    (void)!::write(stop_, &one, sizeof one);
    if (thread_.joinable()) thread_.join();
    ::close(stop_);
}

bool ProgressThread::wait(int descriptor, std::chrono::milliseconds longest) {
    // Negative descriptors count for nothing.
    std::array<pollfd, 3> wanted{pollfd{stop_, POLLIN, 0}, pollfd{work_.alarm, POLLIN, 0},
                                 pollfd{descriptor, POLLIN, 0}};
    (void)::poll(wanted.data(), wanted.size(), static_cast<int>(longest.count()));
    alarmed_ = wanted[1].revents != 0;
    return wanted[0].revents == 0;
}

void ProgressThread::run() {
    auto next_tick = Clock::now() + work_.tick_length;
    CallRate others(work_.driven_by_others());
    bool going_on = true;
    bool slept = false;
    while (going_on) {
        if (Clock::now() >= next_tick) {
            work_.tick();
            next_tick = Clock::now() + work_.tick_length;
        }
        if (others.busy(work_.driven_by_others(), std::exchange(slept, false)) && !alarmed_) {
            going_on = wait(wait_briefly, brief_wait);
            continue;
        }
        const int descriptor = work_.drive();
        slept = descriptor >= 0;
        going_on = wait(descriptor, descriptor >= 0              ? work_.tick_length
                                    : descriptor == continue_now ? no_time
                                                                 : brief_wait);
    }
}

}  // namespace npushmem
