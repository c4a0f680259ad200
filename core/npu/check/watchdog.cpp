#include "core/npu/check/watchdog.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cstdio>
#include <iterator>

namespace npushmem::npu::check {
namespace {

// A launch that makes calls ends by itself within this time after its deadline.
std::chrono::nanoseconds grace(std::chrono::nanoseconds limit) { return limit / 4 + std::chrono::seconds(1); }

}  // namespace

Watchdog::~Watchdog() {
    {
        const std::lock_guard lock(mutex_);
        stopping_ = true;
    }
    changed_.notify_one();
    if (thread_.joinable()) thread_.join();
}

std::unique_ptr<Watchdog::Launch> Watchdog::watch(std::chrono::nanoseconds limit, Describe describe) {
    if (limit.count() == 0) return nullptr;
    const std::lock_guard lock(mutex_);
    launches_.push_back({Clock::now() + limit + grace(limit), limit, std::move(describe)});
    if (launches_.back().at < wakes_at_) changed_.notify_one();
    if (!thread_.joinable()) thread_ = std::thread([this] { run(); });
    return std::make_unique<Launch>(*this, std::prev(launches_.end()));
}

void Watchdog::run() {
    std::unique_lock lock(mutex_);
    while (!stopping_) {
        const auto next = std::ranges::min_element(launches_, {}, &Watched::at);
        wakes_at_ = next == launches_.end() ? Clock::time_point::max() : next->at;
        if (next == launches_.end()) {
            changed_.wait(lock);
        } else if (next->at > Clock::now()) {
            changed_.wait_until(lock, wakes_at_);  // the launch may be gone when this returns
        } else {
            next->at = Clock::time_point::max();
            report(*next);
        }
    }
}

void Watchdog::report(const Watched& launch) const {
    const std::chrono::duration<double> limit = launch.limit;
    const std::string line = fmt::format("npushmem: checked mode: {}\n", launch.describe(limit.count()));
    if (print_) return print_(line);
    static_cast<void>(std::fwrite(line.data(), 1, line.size(), stderr));
}

Watchdog::Launch::~Launch() {
    const std::lock_guard lock(watchdog_.mutex_);
    watchdog_.launches_.erase(launch_);
}

}  // namespace npushmem::npu::check
