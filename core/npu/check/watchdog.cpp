// SPDX-License-Identifier: BSD-3-Clause
#include "core/npu/check/watchdog.hpp"

#include <fcntl.h>
#include <fmt/format.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cstdio>
#include <iterator>

#include "core/base/poller.hpp"
#include "core/npu/source_line.hpp"

namespace npushmem::npu::check {
namespace {

// A launch that makes calls ends by itself within this time after its deadline.
std::chrono::nanoseconds grace(std::chrono::nanoseconds limit) { return limit / 4 + std::chrono::seconds(1); }

// Sleeps end at times that still have a representation.
constexpr std::chrono::hours longest_sleep{24};

class SystemWatchdogClock final : public WatchdogClock {
public:
    std::chrono::nanoseconds now() override { return std::chrono::steady_clock::now().time_since_epoch(); }
    // The second number of "schedstat": nanoseconds in a run queue.
    std::chrono::nanoseconds without_cpu(int thread) override {
        const std::string path = fmt::format("/proc/self/task/{}/schedstat", thread);
        const FileDescriptor file(::open(path.c_str(), O_RDONLY | O_CLOEXEC));
        std::array<char, 64> text{};
        unsigned long long waited = 0;
        if (!file.valid() || ::read(file.get(), text.data(), text.size() - 1) <= 0) return {};
        if (std::sscanf(text.data(), "%*u %llu", &waited) != 1) return {};
        return std::chrono::nanoseconds(waited);
    }
    void wait(std::condition_variable& changed, std::unique_lock<std::mutex>& lock,
              std::chrono::nanoseconds longest) override {
        changed.wait_for(lock, std::min<std::chrono::nanoseconds>(longest, longest_sleep));
    }
};

}  // namespace

WatchdogClock& WatchdogClock::system() {
    static SystemWatchdogClock clock;
    return clock;
}

std::string CallTrace::describe_stuck(const std::string& title, double limit) const {
    const CorePlace* last = running_.load(std::memory_order_relaxed);
    const std::string call = last == nullptr
                                 ? "no core has made any"
                                 : fmt::format("PE {} core {} made the last one, at {}", last->pe, last->core,
                                               text_of(last->at.load(std::memory_order_relaxed)));
    return fmt::format(
        "{} has not ended within its deadline of {} s, and it cannot be ended before its core makes the next call into "
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
    const int thread = ::gettid();
    launches_.push_back({thread, limit, own_time(thread), std::move(describe)});
    if (clock_.now() + limit + grace(limit) < wakes_at_) changed_.notify_one();
    if (!thread_.joinable()) thread_ = std::thread([this] { run(); });
    return std::make_unique<Launch>(*this, std::prev(launches_.end()));
}

Watchdog::Time Watchdog::report_due(std::vector<std::string>& reports) {
    Time next = Time::max();
    for (Watched& launch : launches_) {
        if (launch.reported) continue;
        const Time left = launch.begun + launch.limit + grace(launch.limit) - own_time(launch.thread);
        if (left.count() > 0) {
            next = std::min(next, left);
        } else {
            launch.reported = true;
            const std::chrono::duration<double> limit = launch.limit;
            reports.push_back(fmt::format("npushmem: checked mode: {}\n", launch.describe(limit.count())));
        }
    }
    return next;
}

void Watchdog::run() {
    std::unique_lock lock(mutex_);
    while (!stopping_) {
        std::vector<std::string> reports;
        const Time next = report_due(reports);
        wakes_at_ = next == Time::max() ? next : clock_.now() + next;
        if (reports.empty()) {
            clock_.wait(changed_, lock, next);
            continue;
        }
        // The user's function may begin or end launches.
        lock.unlock();
        for (const std::string& line : reports) print(line);
        lock.lock();
    }
}

void Watchdog::print(const std::string& line) const {
    if (print_) return print_(line);
    static_cast<void>(std::fwrite(line.data(), 1, line.size(), stderr));
}

Watchdog::Launch::~Launch() {
    const std::lock_guard lock(watchdog_.mutex_);
    watchdog_.launches_.erase(launch_);
}

}  // namespace npushmem::npu::check
