// SPDX-License-Identifier: BSD-3-Clause
// An environment in a map, and an operating system in which only waits advance the time.
#pragma once

#include <cstdint>
#include <functional>
#include <map>
#include <string>
#include <vector>

#include "core/base/config.hpp"
#include "core/base/parking.hpp"

namespace npushmem {

class FakeEnvironment final : public Environment {
public:
    FakeEnvironment() = default;
    FakeEnvironment(std::initializer_list<std::pair<const std::string, std::string>> values) : values_(values) {}

    [[nodiscard]] std::optional<std::string> get(const std::string& name) const override {
        const auto found = values_.find(name);
        return found != values_.end() ? std::optional(found->second) : std::nullopt;
    }
    [[nodiscard]] std::map<std::string, std::string> npushmem_variables() const override {
        std::map<std::string, std::string> found;
        for (const auto& [name, value] : values_)
            if (name.starts_with("NPUSHMEM_")) found.emplace(name, value);
        return found;
    }

private:
    std::map<std::string, std::string> values_;
};

}  // namespace npushmem

namespace npushmem::testing {

class FakeWaitOs final : public WaitOs {
public:
    std::chrono::nanoseconds now() override {
        time_ += clock_cost;
        return time_;
    }
    std::chrono::nanoseconds run_time() override {
        if (on_run_time) on_run_time();
        return is_kept_running ? time_ : std::chrono::nanoseconds{0};
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

    // No thread wakes another one here.
    void sleep_on(std::uint32_t*, std::uint32_t, std::chrono::nanoseconds longest) override { sleep(longest); }

    [[nodiscard]] std::chrono::nanoseconds time() const { return time_; }

    std::chrono::nanoseconds clock_cost{500};
    std::chrono::nanoseconds yield_cost{1000};
    bool is_kept_running = false;  // the kernel runs no other thread on a yield
    std::uint64_t yields = 0;
    std::vector<std::chrono::nanoseconds> sleeps;
    std::function<void()> on_yield;
    std::function<void()> on_sleep;
    std::function<void()> on_run_time;

private:
    std::chrono::nanoseconds time_{1'000'000};
};

}  // namespace npushmem::testing
