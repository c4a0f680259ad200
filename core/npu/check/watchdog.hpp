// Reports launches that run far beyond their deadline. A kernel that makes no calls cannot be ended, because its core
// never returns to the scheduler; a thread of its own says at least which launch it is.
#pragma once

#include <chrono>
#include <condition_variable>
#include <functional>
#include <list>
#include <memory>
#include <mutex>
#include <string>
#include <thread>

#include "npushmem/npu/core_state.hpp"

namespace npushmem::npu::check {

class Watchdog {
public:
    // `print` takes the report; empty: standard error.
    explicit Watchdog(Print print) : print_(std::move(print)) {}
    Watchdog(const Watchdog&) = delete;
    Watchdog& operator=(const Watchdog&) = delete;
    ~Watchdog();

    // Called by the watchdog's thread, at most once per launch.
    using Describe = std::function<std::string(double limit)>;
    class Launch;
    // Until the result is destroyed. A limit of 0 is none.
    [[nodiscard]] std::unique_ptr<Launch> watch(std::chrono::nanoseconds limit, Describe describe);

private:
    using Clock = std::chrono::steady_clock;
    struct Watched {
        Clock::time_point at;
        std::chrono::nanoseconds limit;
        Describe describe;
    };

    void run();
    void report(const Watched& launch) const;

    Print print_;
    std::mutex mutex_;
    std::condition_variable changed_;
    std::list<Watched> launches_;
    bool stopping_ = false;
    Clock::time_point wakes_at_ =
        Clock::time_point::max();  // of the thread; launches that are due later need not wake it
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
