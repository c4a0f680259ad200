// SPDX-License-Identifier: BSD-3-Clause
// The collective calls of a team on this PE: their number, and the function in progress, for reports of long waits.
#pragma once

#include <atomic>
#include <chrono>
#include <cstdint>
#include <string>

#include "core/base/wait.hpp"

namespace npushmem {

// One thread at a time, like the team.
class CollectiveCalls final : public WaitObserver {
public:
    // `waiter` and `team`, the team's name, outlive this. `published` counts the calls for other PEs; null: nobody
    // reads the number.
    CollectiveCalls(const Waiter& waiter, const std::string& team, std::atomic<std::uint64_t>* published)
        : team_(team),
          next_(waiter.observer()),
          waiter_(waiter, next_ != nullptr ? this : nullptr),
          number_(published != nullptr ? published : &unpublished_) {}

    // The waiter for waits in the team's collective calls: as the one given, and it adds the call in progress to what
    // that one's observer receives.
    [[nodiscard]] const Waiter& waiter() const { return waiter_; }

    void observe(const void* id, const WaitFor& wait, std::chrono::nanoseconds began,
                 std::chrono::nanoseconds now) override {
        WaitFor named = wait;
        named.call = function_;
        named.team = team_.c_str();
        // Without a function the wait belongs to an internal barrier, which has no number.
        if (function_ != nullptr) named.call_number = number_->load(std::memory_order_relaxed);
        next_->observe(id, named, began, now);
    }
    void end(const void* id) override { next_->end(id); }

private:
    friend class CollectiveCall;

    const std::string& team_;
    WaitObserver* next_;
    Waiter waiter_;
    std::atomic<std::uint64_t> unpublished_{0};
    std::atomic<std::uint64_t>* number_;
    const char* function_ = nullptr;
};

// A collective call in progress; costs three stores.
class CollectiveCall {
public:
    // `function` is a literal.
    CollectiveCall(CollectiveCalls& calls, const char* function) : calls_(calls) {
        calls_.function_ = function;
        // Relaxed: a number for messages; only this thread writes it.
        calls_.number_->store(calls_.number_->load(std::memory_order_relaxed) + 1, std::memory_order_relaxed);
    }
    CollectiveCall(const CollectiveCall&) = delete;
    CollectiveCall& operator=(const CollectiveCall&) = delete;
    ~CollectiveCall() { calls_.function_ = nullptr; }

private:
    CollectiveCalls& calls_;
};

}  // namespace npushmem
