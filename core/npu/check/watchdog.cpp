// SPDX-License-Identifier: BSD-3-Clause
#include "core/npu/check/watchdog.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cstdio>
#include <iterator>

#include "core/npu/source_line.hpp"

namespace npushmem::npu::check {
namespace {

// A launch that makes calls ends by itself within this time after its deadline.
std::chrono::nanoseconds grace(std::chrono::nanoseconds limit) { return limit / 4 + std::chrono::seconds(1); }

}  // namespace

std::string CallTrace::describe_stuck(const std::string& title, double limit) const {
    const CorePlace* last = running_.load(std::memory_order_relaxed);
    const std::string call = last == nullptr
                                 ? "no core has made any"
                                 : fmt::format("PE {} core {} made the last one, at {}", last->pe, last->core,
                                               text_of(last->at.load(std::memory_order_relaxed)));
    return fmt::format(
        "{} has not ended within its deadline of {} s, and it cannot be ended because it makes no call into "
        "the kernel language; {}",
        title, limit, call);
}

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
