// SPDX-License-Identifier: BSD-3-Clause
#include "core/base/wait.hpp"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>

namespace npushmem {

namespace {

using std::chrono::microseconds;
using std::chrono::milliseconds;
using std::chrono::nanoseconds;

// Nobody wakes a sleeper that awaits a plain store. It finds the store within a hundredth of the time that it has
// waited, and within the longest sleep.
constexpr int naps_per_wait = 100;
constexpr milliseconds longest_unwoken_sleep{250};
// A writer or an arrival wakes it. It drives the transports after each nap, as this PE's own messages may need that.
constexpr int naps_per_parked_wait = 32;

// A message arrives only when the transports are driven, which takes longer than some spins.
constexpr std::uint64_t spins_per_drive = 4;
constexpr std::uint64_t spins_per_clock = 32;

// The yields within this time show whether other threads run.
constexpr microseconds time_to_judge{10};

// Relaxed accesses make this defined for several threads; without a lock prefix it costs as little as a plain addition.
// Nothing is published through these counters.
void add(std::atomic<std::uint64_t>& counter, std::uint64_t count) {
    if (count == 0) return;
    counter.store(counter.load(std::memory_order_relaxed) + count, std::memory_order_relaxed);
}

std::string format_peers(const PeRange& pes) {
    if (pes.count == 1) return fmt::format(" from PE {}", pes.at(0));
    constexpr int max_listed = 16;
    if (pes.table != nullptr && pes.count > 1)
        return fmt::format(" from PEs {}{}", fmt::join(pes.table, pes.table + std::min(pes.count, max_listed), ", "),
                           pes.count > max_listed ? " and others" : "");
    if (pes.count > 1) return fmt::format(" from PEs {} to {}", pes.first, pes.at(pes.count - 1));
    return {};
}

}  // namespace

void WaitSteps::add_to(WaitCounters& counters) const {
    add(counters.spins, spins);
    add(counters.yields, yields);
    add(counters.sleeps, sleeps);
    add(counters.parks, parks);
    add(counters.liveness_checks, liveness_checks);
}

BackoffState::BackoffState(const Waiter& waiter, const WaitFor& what)
    : waiter_(waiter),
      what_(what),
      spin_mask_((has_progress() ? spins_per_drive : spins_per_clock) - 1),
      stage_(waiter.budget_.spin_for > nanoseconds::zero() ? Stage::spin : Stage::yield),
      next_sleep_(waiter.budget_.first_sleep),
      liveness_check_interval_(waiter.budget_.first_check) {}

BackoffState::~BackoffState() {
    if (announced_) what_.parking->retract();
    if (observed_) waiter_.observer_->end(this);
    add(waiter_.counters_.waits, 1);
    if (started_) add(waiter_.counters_.time, static_cast<std::uint64_t>((now_ - *started_).count()));
    steps_.add_to(waiter_.counters_);
}

void Waiter::count_woken(std::uint32_t sleepers) const { add(counters_.wakes, sleepers); }

bool BackoffState::step_slow_path() { return stage_ == Stage::yield ? yield() : sleep(); }

bool BackoffState::yield() {
    if (waiter_.budget_.yield_for == nanoseconds::zero()) return check_clock();  // which moves to the next stage
    waiter_.os_.yield();
    const bool checks = ++steps_.yields % yields_per_check == 0 || has_progress();
    return !checks || check_clock();
}

bool BackoffState::sleep() {
    if (what_.parking != nullptr && !announced_) {
        what_.parking->announce();
        announced_ = true;
        return true;  // the caller checks the condition again before the next step sleeps
    }
    if (announced_) {
        what_.parking->park(waiter_.os_, sleep_length());
        what_.parking->retract();
        announced_ = false;
        ++steps_.parks;
    } else {
        waiter_.os_.sleep(sleep_length());
    }
    ++steps_.sleeps;
    const bool alive = check_clock();
    next_sleep_ = std::min(next_sleep_ * 2, longest_nap());
    return alive;
}

bool BackoffState::must_drive() const {
    return has_progress() && (what_.parking == nullptr || !waiter_.progress_->reports_arrivals);
}

// A wait that has lasted long may end a little later, and costs less. Transports that only waits drive are driven at
// the pace of the budget.
nanoseconds BackoffState::longest_nap() const {
    if (must_drive() || what_.is_stepwise) return waiter_.budget_.longest_sleep;
    const int naps = what_.parking == nullptr ? naps_per_wait : naps_per_parked_wait;
    const nanoseconds share = std::min<nanoseconds>((now_ - *started_) / naps, longest_unwoken_sleep);
    return std::max(share, waiter_.budget_.longest_sleep);
}

nanoseconds BackoffState::sleep_length() const {
    const nanoseconds longest = longest_sleep();
    if (what_.timeout == nanoseconds::zero()) return longest;
    const nanoseconds left = *started_ + what_.timeout - now_;
    return std::clamp(left, nanoseconds{1}, longest);
}

// If a writer will wake the sleeper, it wakes up only to check that those PEs are alive.
nanoseconds BackoffState::longest_sleep() const {
    const bool checks = waiter_.liveness_ != nullptr && what_.needs.count != 0;
    nanoseconds to_check =
        checks ? std::max<nanoseconds>(next_liveness_check_ - now_, nanoseconds{1}) : longest_unwoken_sleep;
    if (!what_.writers_wake) to_check = std::min<nanoseconds>(to_check, longest_unwoken_sleep);
    if (what_.parking != nullptr && !has_progress()) return to_check;
    // A check may be late by a sleep of the budget.
    return std::min(next_sleep_, std::max(to_check, waiter_.budget_.longest_sleep));
}

bool BackoffState::check_clock() {
    now_ = waiter_.os_.now();
    if (!started_) {
        started_ = stage_began_ = now_;
        next_liveness_check_ = now_ + liveness_check_interval_;
    }
    advance();
    if (has_progress()) waiter_.progress_->drive();
    report_to_observer();
    return check_deadline() && check_liveness();
}

void BackoffState::advance() {
    if (stage_ == Stage::sleep) return;
    const bool spinning = stage_ == Stage::spin;
    const nanoseconds allowed = spinning ? waiter_.budget_.spin_for : waiter_.budget_.yield_for;
    if (now_ - stage_began_ < allowed && !yields_in_vain()) return;
    stage_ = spinning ? Stage::yield : Stage::sleep;
    stage_began_ = now_;
}

// Linux may keep a thread running for milliseconds although it yields, for instance because the other threads of the
// core belong to another session (sched_autogroup), and the awaited PE may need this core: the first barriers of 4 PEs
// on two emulated hosts took 350 us instead of 26 in 5 % of the jobs. Such a thread has run nearly all the time. So has
// one whose core nobody else needs; it then sleeps in vain. Once it sleeps, others run.
bool BackoffState::yields_in_vain() {
    const bool is_woken = what_.writers_wake && !must_drive();
    if (stage_ != Stage::yield || !is_woken || !waiter_.is_oversubscribed()) return false;
    const bool first = yields_from_ == nanoseconds::zero();  // a short wait does not read its run time
    const nanoseconds lasted = now_ - (first ? stage_began_ : yields_from_);
    if (lasted < time_to_judge) return false;
    const nanoseconds ran = waiter_.os_.run_time() - ran_before_;
    yields_from_ = now_;
    ran_before_ += ran;
    return !first && ran > lasted * 3 / 4;
}

void BackoffState::report_to_observer() {
    if (waiter_.observer_ == nullptr || now_ - *started_ < WaitObserver::long_wait) return;
    observed_ = true;
    waiter_.observer_->observe(this, what_, *started_, now_);
}

bool BackoffState::check_deadline() {
    if (what_.timeout == nanoseconds::zero() || now_ - *started_ < what_.timeout) return true;
    return fail(Code::timeout, -1);
}

bool BackoffState::check_liveness() {
    if (waiter_.liveness_ == nullptr || what_.needs.count == 0 || now_ < next_liveness_check_) return true;
    liveness_check_interval_ = std::min(liveness_check_interval_ * 2, waiter_.budget_.longest_check);
    next_liveness_check_ = now_ + liveness_check_interval_;
    ++steps_.liveness_checks;
    const auto dead = waiter_.liveness_->find_dead(what_.needs);
    return !dead || fail(Code::peer_dead, *dead);
}

bool BackoffState::fail(Code code, int dead_pe) {
    failure_ = {code, dead_pe, now_ - *started_};
    return false;
}

std::string describe(const WaitFor& what, const WaitFailure& failure) {
    const double seconds = std::chrono::duration<double>(failure.waited).count();
    const std::string reason = failure.code == Code::peer_dead
                                   ? fmt::format("PE {} has died or finalized", failure.dead_pe)
                                   : std::string("timed out");
    return fmt::format("waited {:.3f} s for {}{}: {}", seconds, what.what, format_peers(what.needs), reason);
}

std::string describe(const WaitFor& what, const WaitFailure& failure, std::uint64_t expected, std::uint64_t seen) {
    return fmt::format("{} (expected {} or later, last saw {})", describe(what, failure), expected, seen);
}

}  // namespace npushmem
