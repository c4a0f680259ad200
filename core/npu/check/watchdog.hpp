// SPDX-License-Identifier: BSD-3-Clause
// Reports launches that run far beyond their deadline, with the last call that a core made.
#pragma once

#include <atomic>
#include <chrono>
#include <condition_variable>
#include <deque>
#include <functional>
#include <list>
#include <memory>
#include <mutex>
#include <string>
#include <thread>
#include <vector>

#include "npushmem/npu/core_state.hpp"
#include "npushmem/npu/source_location.hpp"

namespace npushmem::npu::check {

// Where a core made its last call.
struct CorePlace {
    CorePlace(int its_pe, int its_core) : pe(its_pe), core(its_core) {}

    int pe;
    int core;
    // Relaxed: the watchdog's thread reads it (CallTrace::describe_stuck) while the core's thread writes it.
    std::atomic<SourceLocation> at{SourceLocation{}};
};

// The last call of every core of a launch, and of the core that runs.
class CallTrace {
public:
    CorePlace& add(int pe, int core) { return places_.emplace_back(pe, core); }
    // A core has made a call. Relaxed: pairs with the load in describe_stuck(), which needs no order.
    void enter(CorePlace& place, const SourceLocation& where) {
        place.at.store(where, std::memory_order_relaxed);
        running_.store(&place, std::memory_order_relaxed);
    }
    // For the watchdog's thread: a launch with this title is beyond its deadline, in seconds, and cannot be ended.
    [[nodiscard]] std::string describe_stuck(const std::string& title, double limit) const;

private:
    std::deque<CorePlace> places_;
    std::atomic<const CorePlace*> running_{nullptr};
};

// What a watchdog measures by; an interface, so that tests run without time passing.
class WatchdogClock {
public:
    WatchdogClock() = default;
    WatchdogClock(const WatchdogClock&) = delete;
    WatchdogClock& operator=(const WatchdogClock&) = delete;
    virtual ~WatchdogClock() = default;

    // Monotonic, from an arbitrary origin.
    virtual std::chrono::nanoseconds now() = 0;
    // How long the thread, by its gettid(), was ready to run but had no CPU. 0 where the system does not count it.
    virtual std::chrono::nanoseconds without_cpu(int thread) = 0;
    // Waits until notified, at most for `longest`.
    virtual void wait(std::condition_variable& changed, std::unique_lock<std::mutex>& lock,
                      std::chrono::nanoseconds longest) = 0;

    static WatchdogClock& system();
};

// A kernel that makes no calls cannot be ended, because its core never returns to the scheduler. A thread of its own
// reports that launch. Time in which the launch's thread waited for a CPU does not count.
class Watchdog {
public:
    // `print` takes the report; empty: standard error.
    explicit Watchdog(Print print, WatchdogClock& clock = WatchdogClock::system())
        : print_(std::move(print)), clock_(clock) {}
    Watchdog(const Watchdog&) = delete;
    Watchdog& operator=(const Watchdog&) = delete;
    ~Watchdog();

    // Called by the watchdog's thread, at most once per launch.
    using Describe = std::function<std::string(double limit)>;
    class Launch;
    // Called by the launch's thread. Until the result is destroyed. A limit of 0 is none.
    [[nodiscard]] std::unique_ptr<Launch> watch(std::chrono::nanoseconds limit, Describe describe);

private:
    using Time = std::chrono::nanoseconds;
    struct Watched {
        int thread;
        Time limit;
        Time begun;  // on the clock of its own time
        Describe describe;
        bool reported = false;
    };

    // The time since an arbitrary origin in which the thread had a CPU or waited for something else.
    [[nodiscard]] Time own_time(int thread) const { return clock_.now() - clock_.without_cpu(thread); }
    // Describes the launches that are due. Returns the time until the next one is due at the earliest.
    Time report_due(std::vector<std::string>& reports);
    void run();
    void print(const std::string& line) const;

    Print print_;
    WatchdogClock& clock_;
    std::mutex mutex_;
    std::condition_variable changed_;
    std::list<Watched> launches_;
    bool stopping_ = false;
    Time wakes_at_ = Time::max();  // of the thread; launches that are due later need not wake it
    std::thread thread_;           // started with the first launch
};

class Watchdog::Launch {
public:
    Launch(Watchdog& watchdog, std::list<Watched>::iterator launch) : watchdog_(watchdog), launch_(launch) {}
    Launch(const Launch&) = delete;
    Launch& operator=(const Launch&) = delete;
    ~Launch();

private:
    Watchdog& watchdog_;
    std::list<Watched>::iterator launch_;
};

}  // namespace npushmem::npu::check
