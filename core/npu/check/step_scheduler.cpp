// SPDX-License-Identifier: BSD-3-Clause
#include "core/npu/check/step_scheduler.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <utility>

namespace npushmem::npu::check {

using explore::ThreadId;

namespace {

constexpr std::chrono::milliseconds longest_sleep{10};
// After so long without an event, a PE whose host neither launches a kernel nor enters a host barrier is not waited
// for: its host waits for a kernel, or computes.
constexpr std::chrono::seconds patience_with_hosts{2};
// So long the kernels wait for such a host before they count as deadlocked.
constexpr std::chrono::seconds max_wait_for_hosts{30};

}  // namespace

ThreadId StepScheduler::number_of(std::size_t pe, ThreadId local) {
    const LocalThread thread{pe, turns_.slots[pe].launch, local};
    const auto [found, added] = numbers_.try_emplace(thread, static_cast<ThreadId>(threads_.size()));
    if (added) {
        threads_.push_back(thread);
        taken_.push_back(0);
    }
    return found->second;
}

bool StepScheduler::any(State state) const {
    return std::ranges::any_of(pes_, [state](const Pe& pe) { return pe.state == state; });
}

void StepScheduler::take_step(std::size_t pe) {
    const SharedStep& shared = turns_.slots[pe].step;
    if (!shared.exists) return;
    const ThreadId local = std::get<ThreadId>(threads_[static_cast<std::size_t>(last_)]);
    preferred_ = turns_.slots[pe].preferred > local ? last_ + 1 : last_;
    explore::Step step = shared.step();
    for (explore::StepId& before : step.after) before.thread = number_of(pe, before.thread);
    const auto& first = pes_[pe].begins_after;
    if (++taken_[static_cast<std::size_t>(last_)] == 1) step.after.insert(step.after.end(), first.begin(), first.end());
    if (std::ranges::any_of(step.accesses, &explore::MemoryAccess::write)) changed_by_ = static_cast<int>(pe);
    if (!shared.accesses.complete || !shared.after.complete)
        obstacle_ = fmt::format("a step of PE {} has more than {} accesses", pe, SharedStep::max_accesses);
    if (decided_) decisions_.executed(std::move(step));
}

// Relaxed: a PE publishes its number before it asks.
void StepScheduler::begin_launch(std::size_t pe) {
    const std::uint64_t entered = turns_.entered[pe].load(std::memory_order_relaxed);
    std::vector<explore::StepId>& after = pes_[pe].begins_after;
    after.clear();
    for (std::size_t other = 0; other < pes_.size(); ++other) {
        const Pe& earlier = pes_[other];
        if (other == pe || earlier.entered < entered)
            after.insert(after.end(), earlier.last_steps.begin(), earlier.last_steps.end());
    }
}

void StepScheduler::end_launch(std::size_t pe) {
    pes_[pe].last_steps.clear();
    pes_[pe].entered = turns_.entered[pe].load(std::memory_order_relaxed);
    for (std::size_t thread = 0; thread < threads_.size(); ++thread) {
        const auto& [owner, launch, local] = threads_[thread];
        if (owner == pe && launch == turns_.slots[pe].launch && taken_[thread] > 0)
            pes_[pe].last_steps.push_back({static_cast<ThreadId>(thread), taken_[thread]});
    }
    answer(pe, Answer::ended);
}

void StepScheduler::take_requests() {
    for (std::size_t i = 0; i < pes_.size(); ++i) {
        const StepTurns::Slot& slot = turns_.slots[i];
        Pe& pe = pes_[i];
        // Acquire: the request was written before the number.
        const std::uint32_t asked = slot.asked.load(std::memory_order_acquire);
        if (pe.state == State::asking || asked == slot.answered.load(std::memory_order_relaxed)) continue;
        if (pe.state == State::absent || slot.step.exists) last_event_ = Clock::now();
        if (pe.state == State::absent) begin_launch(i);
        pe.state = State::asking;
        pe.away = false;
        take_step(i);
    }
}

void StepScheduler::answer(std::size_t pe, Answer answer, ThreadId thread) {
    StepTurns::Slot& slot = turns_.slots[pe];
    slot.answer = answer;
    slot.thread = thread;
    slot.changed_by = changed_by_;
    pes_[pe].state = answer == Answer::ended ? State::absent : State::busy;
    // Release: the PE acquires the number and then reads the answer.
    slot.answered.store(slot.asked.load(std::memory_order_relaxed), std::memory_order_release);
    wake_sleeper(slot.answered);
}

void StepScheduler::answer_all(Answer how, int except) {
    for (std::size_t pe = 0; pe < pes_.size(); ++pe)
        if (pes_[pe].state == State::asking && static_cast<int>(pe) != except && !turns_.slots[pe].launch_ended)
            answer(pe, how);
}

bool StepScheduler::hosts_settled() {
    // Relaxed: the numbers only grow, and a PE that asks has published its own.
    const auto entered = [&](std::size_t pe) { return turns_.entered[pe].load(std::memory_order_relaxed); };
    std::uint64_t first = ~std::uint64_t{0};
    for (std::size_t pe = 0; pe < pes_.size(); ++pe)
        if (pes_[pe].state == State::asking) first = std::min(first, entered(pe));
    const bool patient = Clock::now() < last_event_ + patience_with_hosts;
    for (std::size_t pe = 0; pe < pes_.size(); ++pe) {
        if (pes_[pe].state == State::asking || pes_[pe].away || entered(pe) > first) continue;
        if (patient) return false;
        pes_[pe].away = true;
    }
    return true;
}

bool StepScheduler::resolve_idle() {
    changed_by_ = -1;
    if (std::ranges::any_of(pes_, &Pe::away) && Clock::now() < last_event_ + max_wait_for_hosts) {
        if (std::exchange(idle_answered_, !idle_answered_)) return false;
        answer_all(Answer::look_again);
        return true;
    }
    answer_all(std::exchange(idle_answered_, true) ? Answer::deadlock : Answer::idle);
    return true;
}

std::vector<explore::Waiting> StepScheduler::waiting() {
    std::vector<explore::Waiting> all;
    for (std::size_t pe = 0; pe < pes_.size(); ++pe) {
        if (pes_[pe].state != State::asking) continue;
        for (const StepTurns::Waiting& one : turns_.slots[pe].waiting)
            all.push_back({number_of(pe, one.thread), one.guard.guard()});
    }
    return all;
}

void StepScheduler::grant(const std::vector<ThreadId>& enabled) {
    const ThreadId first = explore::default_order(enabled, preferred_).front();
    ThreadId chosen = first;
    if (decided_) chosen = decisions_.choose(enabled, preferred_);
    if (decided_ && decisions_.redundant()) {
        decided_ = false;
        decisions_.end_run(waiting());
    }
    if (chosen != first) deviations_.push_back({steps_, chosen});
    ++steps_;
    last_ = chosen;
    idle_answered_ = false;
    const auto& [pe, launch, local] = threads_[static_cast<std::size_t>(chosen)];
    answer(pe, Answer::run, local);
}

bool StepScheduler::advance() {
    if (any(State::busy) || !any(State::asking)) return false;
    if (changed_by_ >= 0) {
        answer_all(Answer::look_again, changed_by_);
        changed_by_ = -1;
        if (any(State::busy)) return true;
    }
    for (std::size_t pe = 0; pe < pes_.size(); ++pe)
        if (pes_[pe].state == State::asking && turns_.slots[pe].launch_ended) end_launch(pe);
    if (!any(State::asking) || !hosts_settled()) return false;
    if (steps_ >= turns_.max_steps) {
        answer_all(Answer::step_limit);
        return true;
    }
    std::vector<ThreadId> enabled;
    for (std::size_t pe = 0; pe < pes_.size(); ++pe) {
        if (pes_[pe].state != State::asking) continue;
        for (const ThreadId local : turns_.slots[pe].enabled) enabled.push_back(number_of(pe, local));
    }
    std::ranges::sort(enabled);
    if (enabled.empty()) return resolve_idle();
    grant(enabled);
    return true;
}

void StepScheduler::run(const std::atomic<bool>& job_ended) {
    // Acquire: pairs with the release of the notification.
    for (;;) {
        const std::uint32_t events = turns_.events.load(std::memory_order_acquire);
        if (job_ended.load(std::memory_order_acquire)) break;
        take_requests();
        if (!advance()) sleep_on(turns_.events, events, longest_sleep);
    }
    if (decided_) decisions_.end_run({});
}

}  // namespace npushmem::npu::check
