// SPDX-License-Identifier: BSD-3-Clause
// Waiting. Every blocking call of the library uses Waiter::until. It polls, then polls with pauses, then yields, then
// sleeps; the budget bounds each stage. Meanwhile it checks the clock, the deadline and the PEs that the wait depends
// on, and drives progress. The fast path costs only the load and the compare.
//
//     const Code code = waiter.until([&] { return flag.load(std::memory_order_acquire) >= 7; },
//                                    {.what = "the flag", .needs = PeRange::one(3), .timeout = limit}, &failure);
//
// Where the writer can wake the sleeper (see Parking), the sleep lasts until it does, unless the Parking limits it.
// Otherwise the budget limits it, and after that a hundredth of the time waited so far, up to 250 ms.
// Where PEs outnumber cores, a wait that every writer or arrival wakes sleeps as soon as its yields let no other thread
// run.
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
#include "npushmem/plugin/status.hpp"

namespace npushmem {

// The transports, as far as waits concern them.
struct WaitProgress {
    std::function<void()> drive;  // empty: there is nothing to drive
    // They wake sleepers when something has arrived (see AwaitedBytes), and drive themselves.
    bool reports_arrivals = false;
};

// Describes a wait.
struct WaitFor {
    const char* what = "a condition";     // a literal for messages: "the release of a barrier"
    PeRange needs{};                      // the wait fails when one of these world PEs is dead
    std::chrono::nanoseconds timeout{0};  // 0: none
    Parking* parking = nullptr;
    // Every writer of the awaited bytes wakes the parked thread. Not so in wait_until: see AwaitedBytes.
    bool writers_wake = false;
    // Each check of the condition makes one step of many, or reads the memory of another PE: no sleep exceeds the
    // budget.
    bool is_stepwise = false;
    // For reports of long waits:
    const char* call = nullptr;     // the API function; null: unknown
    const char* team = nullptr;     // of a collective call; otherwise null
    std::uint64_t call_number = 0;  // among the collective calls of the team, from 1 on
    const void* object = nullptr;   // the awaited object in symmetric memory
};

// Receives the waits that last long. The waiting threads call it, so waits that end soon cost nothing.
class WaitObserver {
public:
    // A wait is long from this time on.
    static constexpr std::chrono::milliseconds long_wait{10};

    WaitObserver() = default;
    WaitObserver(const WaitObserver&) = delete;
    WaitObserver& operator=(const WaitObserver&) = delete;
    virtual ~WaitObserver() = default;

    // The wait, identified by `id` while it lasts, has lasted from `began` to `now`. Called at every later reading of
    // the clock: at least at every check of the PEs that the wait needs (see WaitBudget).
    virtual void observe(const void* id, const WaitFor& wait, std::chrono::nanoseconds began,
                         std::chrono::nanoseconds now) = 0;
    // An observed wait has ended.
    virtual void end(const void* id) = 0;
};

// Describes why a wait failed.
struct WaitFailure {
    Code code = Code::ok;  // timeout or peer_dead
    int dead_pe = -1;
    std::chrono::nanoseconds waited{0};
};

// Counts the steps of waits. The waiting thread writes them and any thread may read them. When several threads of a
// process wait at the same time, a few counts can get lost.
struct WaitCounters {
    std::atomic<std::uint64_t> waits{0};  // waits whose condition was not true at once
    // Nanoseconds in longer waits, from their first to their last reading of the clock. The first reading follows some
    // polls or yields.
    std::atomic<std::uint64_t> time{0};
    std::atomic<std::uint64_t> spins{0};
    std::atomic<std::uint64_t> yields{0};
    std::atomic<std::uint64_t> sleeps{0};
    std::atomic<std::uint64_t> parks{0};            // sleeps that a writer can end
    std::atomic<std::uint64_t> liveness_checks{0};  // checks for dead PEs
    std::atomic<std::uint64_t> wakes{0};            // sleepers woken by this PE
};

// All arguments passed by reference or pointer must outlive the Waiter. Immutable: any number of threads may wait at
// the same time.
class Waiter {
public:
    // Without `liveness` no PE is ever known to be dead. `progress` may be null or empty; it may be set until the first
    // wait. With progress to drive, no sleep exceeds the budget, unless the wait has a Parking and the transports
    // report arrivals. `observer` null: nobody observes long waits.
    Waiter(const WaitBudget& budget, WaitOs& os, WaitCounters& counters, Liveness* liveness = nullptr,
           const WaitProgress* progress = nullptr, WaitObserver* observer = nullptr)
        : budget_(budget),
          os_(os),
          counters_(counters),
          liveness_(liveness),
          progress_(progress),
          observer_(observer) {}
    // Waits as `other` does, with another observer.
    Waiter(const Waiter& other, WaitObserver* observer)
        : Waiter(other.budget_, other.os_, other.counters_, other.liveness_, other.progress_, observer) {}
    // The same with another budget.
    Waiter(const Waiter& other, const WaitBudget& budget)
        : Waiter(budget, other.os_, other.counters_, other.liveness_, other.progress_, other.observer_) {}
    Waiter(const Waiter&) = delete;
    Waiter& operator=(const Waiter&) = delete;

    // Returns ok as soon as `ready()` is true; otherwise timeout or peer_dead, with the reasons in `failure` if given.
    // Calls `ready` at least once, and a last time after it found a PE dead or the deadline passed. `ready` loads with
    // acquire all that the caller reads afterwards.
    template <class Ready>
    Code until(Ready&& ready, const WaitFor& what, WaitFailure* failure = nullptr) const {
        if (ready()) [[likely]]
            return Code::ok;
        return until_slow_path(ready, what, failure);
    }

    // For callers with a polling loop of their own: yields when PEs outnumber cores, because the awaited PE may be
    // waiting for this core.
    void yield_if_oversubscribed() const {
        if (is_oversubscribed()) os_.yield();
    }
    [[nodiscard]] bool is_oversubscribed() const { return budget_.spin_for == std::chrono::nanoseconds::zero(); }

    [[nodiscard]] const WaitBudget& budget() const { return budget_; }
    // Adds to the count of woken sleepers.
    void count_woken(std::uint32_t sleepers) const;
    [[nodiscard]] const WaitCounters& counters() const { return counters_; }
    [[nodiscard]] WaitObserver* observer() const { return observer_; }

private:
    friend class BackoffState;

    template <class Ready>
    [[gnu::noinline]] Code until_slow_path(Ready& ready, const WaitFor& what, WaitFailure* failure) const;

    WaitBudget budget_;
    WaitOs& os_;
    WaitCounters& counters_;
    Liveness* liveness_;
    const WaitProgress* progress_;
    WaitObserver* observer_;
};

// The steps of one wait, counted without atomic accesses.
struct WaitSteps {
    std::uint64_t spins = 0;
    std::uint64_t yields = 0;
    std::uint64_t sleeps = 0;
    std::uint64_t parks = 0;
    std::uint64_t liveness_checks = 0;

    // Adds the steps to the counters of the process, at the end of the wait.
    void add_to(WaitCounters& counters) const;
};

// The state of one wait. The caller checks the condition between any two steps, so one step may announce and the next
// one sleep.
class BackoffState {
public:
    BackoffState(const Waiter& waiter, const WaitFor& what);
    BackoffState(const BackoffState&) = delete;
    BackoffState& operator=(const BackoffState&) = delete;
    // Retracts an announcement and updates the counters.
    ~BackoffState();

    // Polls, yields or sleeps once, by stage. False: the wait has failed, see failure().
    bool step() {
        if (stage_ == Stage::spin) [[likely]] {
            cpu_pause();
            return (++steps_.spins & spin_mask_) != 0 || check_clock();
        }
        return step_slow_path();
    }

    [[nodiscard]] const WaitFailure& failure() const { return failure_; }

private:
    enum class Stage { spin, yield, sleep };
    static constexpr std::uint64_t yields_per_check = 2;

    bool step_slow_path();
    bool yield();
    bool sleep();
    // Reads the clock, then moves to the next stage, drives progress, and fails when the deadline has passed or a PE
    // is dead.
    bool check_clock();
    void advance();
    // Returns whether the last yields let no other thread run, where PEs outnumber cores, and every writer or arrival
    // wakes the wait.
    [[nodiscard]] bool yields_in_vain();
    void report_to_observer();
    bool check_deadline();
    bool check_liveness();
    bool fail(Code code, int dead_pe);
    [[nodiscard]] bool has_progress() const { return waiter_.progress_ != nullptr && waiter_.progress_->drive; }
    [[nodiscard]] bool must_drive() const;
    [[nodiscard]] std::chrono::nanoseconds sleep_length() const;
    [[nodiscard]] std::chrono::nanoseconds longest_sleep() const;
    [[nodiscard]] std::chrono::nanoseconds longest_nap() const;

    const Waiter& waiter_;
    const WaitFor& what_;
    const std::uint64_t spin_mask_;  // spins between two readings of the clock, less one; a power of two
    Stage stage_;
    bool announced_ = false;
    bool observed_ = false;
    // Set at the first reading of the clock. The first poll does not read it: that would slow down short waits.
    std::optional<std::chrono::nanoseconds> started_;
    std::chrono::nanoseconds now_{0};
    std::chrono::nanoseconds stage_began_{0};
    // When the yields began that are judged next, and for how long the thread had run then.
    std::chrono::nanoseconds yields_from_{0};
    std::chrono::nanoseconds ran_before_{0};
    std::chrono::nanoseconds next_sleep_;
    std::chrono::nanoseconds next_liveness_check_{0};
    std::chrono::nanoseconds liveness_check_interval_;
    WaitSteps steps_;
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
        // The dead PE's last writes precede its death, so they are visible now.
        if (ready()) return Code::ok;
        if (failure != nullptr) *failure = backoff.failure();
        return backoff.failure().code;
    }
    return Code::ok;
}

// Returns "waited 1.500 s for the release of a barrier from PE 3: PE 3 has died or finalized" and the like; with
// `expected` and `seen`, also the awaited value and the last one loaded.
std::string describe(const WaitFor& what, const WaitFailure& failure);
std::string describe(const WaitFor& what, const WaitFailure& failure, std::uint64_t expected, std::uint64_t seen);

}  // namespace npushmem
