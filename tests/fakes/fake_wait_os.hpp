// An operating system in which time passes only by waiting.
#pragma once

#include <cstdint>
#include <functional>
#include <vector>

#include "core/base/parking.hpp"

namespace npushmem::testing {

class FakeWaitOs final : public WaitOs {
public:
    std::chrono::nanoseconds now() override {
        time_ += clock_cost;
        return time_;
    }
    void yield() override {
        ++yields;
        time_ += yield_cost;
        if (on_yield) on_yield();
    }
    void sleep(std::chrono::nanoseconds time) override {
        sleeps.push_back(time);
        time_ += time;
        if (on_sleep) on_sleep();
    }

    // Nobody wakes anybody here.
    void sleep_on(std::uint32_t*, std::uint32_t, std::chrono::nanoseconds longest) override { sleep(longest); }

    [[nodiscard]] std::chrono::nanoseconds time() const { return time_; }

    std::chrono::nanoseconds clock_cost{500};
    std::chrono::nanoseconds yield_cost{1000};
    std::uint64_t yields = 0;
    std::vector<std::chrono::nanoseconds> sleeps;
    std::function<void()> on_yield;
    std::function<void()> on_sleep;

private:
    std::chrono::nanoseconds time_{1'000'000};
};

}  // namespace npushmem::testing
