// How a PE waits. Every blocking call of the library goes through Waiter::until, which polls, then polls with pauses,
// then yields, then sleeps, for as long as the budget says; it looks at the clock, at the deadline, at the PEs that the
// wait depends on, and drives progress, all without costing the fast path more than the load and the compare.
//
//     const Code code = waiter.until([&] { return flag.load(std::memory_order_acquire) >= 7; },
//                                    {.what = "the flag", .needs = PeRange::one(3), .timeout = limit}, &failure);
//
// Where the writer can wake the sleeper (see Parking), sleep lasts until it does; elsewhere it is bounded by the
// budget.
#pragma once

#include <atomic>
#include <chrono>
#include <cstdint>
#include <functional>
#include <optional>
#include <string>

#include "core/base/liveness.hpp"
#include "core/base/parking.hpp"
#include "core/base/wait_budget.hpp"
#include "core/base/wait_os.hpp"
#include "npushmem/plugin/status.hpp"

namespace npushmem {

// What is waited for.
struct WaitFor {
    const char* what = "a condition";     // for messages, a literal: "the release of a barrier"
    PeRange needs{};                      // world PEs without which it can never come true
    std::chrono::nanoseconds timeout{0};  // 0: none
    Parking* parking = nullptr;
};

// Why a wait ended without its condition.
struct WaitFailure {
    Code code = Code::ok;  // timeout or peer_dead
    int dead_pe = -1;
    std::chrono::nanoseconds waited{0};
};

// How often each means was used. Written by the waiting thread and readable by any; when several threads of a process
// wait at the same time, a few counts can get lost.
struct WaitCounters {
    std::atomic<std::uint64_t> waits{0};  // that did not find their condition true at once
    // Nanoseconds in the longer ones, from their first look at the clock (after some ten polls or yields) to the last.
    std::atomic<std::uint64_t> time{0};
    std::atomic<std::uint64_t> spins{0};
    std::atomic<std::uint64_t> yields{0};
    std::atomic<std::uint64_t> sleeps{0};
    std::atomic<std::uint64_t> parks{0};            // those of the sleeps that a writer can end
    std::atomic<std::uint64_t> liveness_checks{0};  // whether a PE is dead
    std::atomic<std::uint64_t> wakes{0};            // sleepers that this PE has woken
};

// Everything referred to must outlive the Waiter. Immutable: any number of threads may wait at the same time.
class Waiter {
public:
    // `liveness` may be null: nobody is ever known dead. `progress` may be null or empty; it may be set until the first
    // wait. Where there is progress to drive, no sleep is longer than the budget says.
    Waiter(const WaitBudget& budget, WaitOs& os, WaitCounters& counters, Liveness* liveness = nullptr,
           const std::function<void()>* progress = nullptr)
        : budget_(budget), os_(os), counters_(counters), liveness_(liveness), progress_(progress) {}
    Waiter(const Waiter&) = delete;
    Waiter& operator=(const Waiter&) = delete;

    // Returns ok as soon as `ready()` is true; timeout or peer_dead when it cannot be waited for any longer, with the
    // reasons in `failure` if given. `ready` is called at least once, loads with acquire what the caller wants to see,
    // and is looked at a last time after a PE was found dead or the deadline was found passed.
    template <class Ready>
    Code until(Ready&& ready, const WaitFor& what, WaitFailure* failure = nullptr) const {
        if (ready()) [[likely]]
            return Code::ok;
        return until_slow_path(ready, what, failure);
    }

    // For callers that poll in a loop of their own: when PEs outnumber cores, lets another one run, because the PE that
    // brings what is polled for may be waiting for this very core.
    void yield_if_oversubscribed() const {
        if (budget_.spin_for == std::chrono::nanoseconds::zero()) os_.yield();
    }

    [[nodiscard]] const WaitBudget& budget() const { return budget_; }
    // For those who wake sleepers: how many it were.
    void count_woken(std::uint32_t sleepers) const;
    [[nodiscard]] const WaitCounters& counters() const { return counters_; }

private:
    friend class BackoffState;

    template <class Ready>
    [[gnu::noinline]] Code until_slow_path(Ready& ready, const WaitFor& what, WaitFailure* failure) const;

    WaitBudget budget_;
    WaitOs& os_;
    WaitCounters& counters_;
    Liveness* liveness_;
    const std::function<void()>* progress_;
};

// One wait on its way through the stages. The loop around it looks at the condition between any two steps, so a step
// may announce and the next one sleep.
class BackoffState {
public:
    BackoffState(const Waiter& waiter, const WaitFor& what);
    BackoffState(const BackoffState&) = delete;
    BackoffState& operator=(const BackoffState&) = delete;
    // Retracts an announcement and adds to the counters.
    ~BackoffState();

    // Passes some time in the way of the current stage. False: the wait has failed, see failure().
    bool step() {
        if (stage_ == Stage::spin) [[likely]] {
            cpu_pause();
            return ++spins_ % spins_per_check != 0 || check_clock();
        }
        return step_slow_path();
    }

    [[nodiscard]] const WaitFailure& failure() const { return failure_; }

private:
    enum class Stage { spin, yield, sleep };
    static constexpr std::uint64_t spins_per_check = 32;
    static constexpr std::uint64_t yields_per_check = 8;

    bool step_slow_path();
    bool yield();
    bool sleep();
    // Reads the clock, then moves to the next stage, drives progress, and fails when the deadline has passed or a PE
    // is dead.
    bool check_clock();
    void advance();
    bool check_deadline();
    bool check_liveness();
    bool fail(Code code, int dead_pe);
    [[nodiscard]] bool has_progress() const { return waiter_.progress_ != nullptr && *waiter_.progress_; }
    [[nodiscard]] std::chrono::nanoseconds sleep_length() const;
    [[nodiscard]] std::chrono::nanoseconds longest_sleep() const;

    const Waiter& waiter_;
    const WaitFor& what_;
    Stage stage_;
    bool announced_ = false;
    // Clock values are of the first look (not of the first poll, which would cost the short waits a clock reading).
    std::optional<std::chrono::nanoseconds> started_;
    std::chrono::nanoseconds now_{0};
    std::chrono::nanoseconds stage_began_{0};
    std::chrono::nanoseconds next_sleep_;
    std::chrono::nanoseconds next_liveness_check_{0};
    std::chrono::nanoseconds liveness_check_interval_;
    std::uint64_t spins_ = 0;
    std::uint64_t yields_ = 0;
    std::uint64_t sleeps_ = 0;
    std::uint64_t parks_ = 0;
    std::uint64_t liveness_checks_ = 0;
    WaitFailure failure_;
};

template <class Ready>
Code Waiter::until_slow_path(Ready& ready, const WaitFor& what, WaitFailure* failure) const {
    for (std::uint32_t i = 0; i < budget_.polls; ++i) {
        if (ready()) return Code::ok;
    }
    BackoffState backoff(*this, what);
    while (!ready()) {
        if (backoff.step()) [[likely]]
            continue;
        // What the dead PE wrote before it died was written before it was found dead.
        if (ready()) return Code::ok;
        if (failure != nullptr) *failure = backoff.failure();
        return backoff.failure().code;
    }
    return Code::ok;
}

// "waited 1.500 s for the release of a barrier from PE 3: PE 3 has died or finalized" and the like; with `expected` and
// `seen`, the value waited for and the last one loaded.
std::string describe(const WaitFor& what, const WaitFailure& failure);
std::string describe(const WaitFor& what, const WaitFailure& failure, std::uint64_t expected, std::uint64_t seen);

}  // namespace npushmem
