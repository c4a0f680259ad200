// SPDX-License-Identifier: BSD-3-Clause
#include "core/npu/check/watchdog.hpp"

#include <gtest/gtest.h>
#include <unistd.h>

#include <future>
#include <string>

namespace npushmem::npu::check {
namespace {

using std::chrono::nanoseconds;
using std::chrono::seconds;

// Only waits advance the time. In the first ones the watched thread has no CPU.
class FakeWatchdogClock final : public WatchdogClock {
public:
    explicit FakeWatchdogClock(int waits_without_cpu) : waits_without_cpu_(waits_without_cpu) {}

    nanoseconds now() override { return now_; }
    nanoseconds without_cpu(int /*thread*/) override { return without_cpu_; }
    void wait(std::condition_variable& changed, std::unique_lock<std::mutex>& lock, nanoseconds longest) override {
        if (longest == nanoseconds::max()) return changed.wait(lock);
        ++waits;
        now_ += longest;
        if (waits <= waits_without_cpu_) without_cpu_ += longest;
    }

    int waits = 0;

private:
    int waits_without_cpu_;
    nanoseconds now_{seconds(1000)};
    nanoseconds without_cpu_{seconds(5)};
};

// How often the watchdog waited before it reported a launch.
int waits_before_report(int waits_without_cpu) {
    FakeWatchdogClock clock(waits_without_cpu);
    std::promise<std::string> reported;
    Watchdog watchdog([&](std::string_view text) { reported.set_value(std::string(text)); }, clock);
    const auto launch = watchdog.watch(seconds(300), [](double limit) { return "late: " + std::to_string(limit); });
    EXPECT_EQ(reported.get_future().get(), "npushmem: checked mode: late: 300.000000\n");
    return clock.waits;
}

TEST(Watchdog, DoesNotCountTimeWithoutACpu) {
    EXPECT_EQ(waits_before_report(0), 1);
    EXPECT_EQ(waits_before_report(1), 2);
    EXPECT_EQ(waits_before_report(7), 8);
}

// The function of the user begins a launch of its own, which the watchdog watches, too.
TEST(Watchdog, PrintsWithoutHoldingItsLock) {
    FakeWatchdogClock clock(0);
    std::promise<void> printed;
    Watchdog* own = nullptr;
    Watchdog watchdog(
        [&](std::string_view) {
            const auto inner = own->watch(seconds(600), [](double) { return std::string("inner"); });
            printed.set_value();
        },
        clock);
    own = &watchdog;
    const auto launch = watchdog.watch(seconds(300), [](double) { return std::string("outer"); });
    printed.get_future().get();
}

TEST(Watchdog, MeasuresThisThread) {
    WatchdogClock& clock = WatchdogClock::system();
    const nanoseconds before = clock.now();
    EXPECT_GE(clock.without_cpu(::gettid()), nanoseconds(0));
    EXPECT_GE(clock.now(), before);
    EXPECT_EQ(clock.without_cpu(0), nanoseconds(0)) << "no such thread";
}

}  // namespace
}  // namespace npushmem::npu::check
