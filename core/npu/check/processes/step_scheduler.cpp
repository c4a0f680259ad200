// SPDX-License-Identifier: BSD-3-Clause
#include "core/npu/check/processes/step_scheduler.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <utility>

namespace npushmem::npu::check {

using explore::ThreadId;

namespace {

constexpr std::chrono::milliseconds longest_sleep{10};
// After so long without an event, the kernels continue without a PE whose host waits in a call other than a host
// barrier: it may wait for one of them.
constexpr std::chrono::seconds max_delay_by_blocked_hosts{2};
// After so long without an event, they continue without any host. Without a kernel that can, the run ends.
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
    if (!shared.accesses.complete)
        obstacle_ = fmt::format("a step of PE {} has more than {} accesses", pe, SharedStep::max_accesses);
    if (!shared.after.complete)
        obstacle_ = fmt::format("a step of PE {} waits for more than {} others, as a fence or quiet does", pe,
                                SharedStep::max_after);
    run_.executed(std::move(step));
}

// A host barrier orders the launches that were queued behind it.
void StepScheduler::begin_launch(std::size_t pe) {
    const std::uint64_t entered = turns_.slots[pe].queued_at;
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
    // A host that did not wait for the launch may enter the next barrier before its end, in another run.
    pes_[pe].entered = turns_.entered[pe].load(std::memory_order_relaxed) + (turns_.slots[pe].host_ahead ? 1 : 0);
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
        if (pe.state == State::absent || slot.step.exists) last_event_ = os_.now();
        if (pe.state == State::absent) begin_launch(i);
        if (pe.absence != Absence::none)
            obstacle_ = fmt::format(
                "PE {} launched a kernel after the others had waited {} s for its host{} and had continued without it; "
                "schedules in which its steps come earlier are not explored",
                i, (pe.absence == Absence::late ? max_wait_for_hosts : max_delay_by_blocked_hosts).count(),
                pe.absence == Absence::late ? "" : ", which waited in a call,");
        pe.state = State::asking;
        pe.absence = Absence::none;
        if (!slot.enabled.complete || !slot.waiting.complete)
            obstacle_ = fmt::format("PE {} has more than {} cores, pipes and signals that take steps at once", i,
                                    StepTurns::max_threads);
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
    // Acquire: with the number of its barriers, the launches that the host queued before are known.
    const auto entered = [&](std::size_t pe) { return turns_.entered[pe].load(std::memory_order_acquire); };
    std::uint64_t first = ~std::uint64_t{0};
    for (std::size_t pe = 0; pe < pes_.size(); ++pe)
        if (pes_[pe].state == State::asking) first = std::min(first, entered(pe));
    const std::chrono::nanoseconds waited = os_.now() - last_event_;
    for (std::size_t pe = 0; pe < pes_.size(); ++pe) {
        Absence& absence = pes_[pe].absence;
        if (pes_[pe].state == State::asking || absence == Absence::late) continue;
        const bool in_barrier = entered(pe) > first;
        const bool launches = turns_.launches[pe].load(std::memory_order_acquire) > 0;
        if (in_barrier && !launches) continue;
        const bool blocked = turns_.host_waits[pe].load(std::memory_order_relaxed) && !launches;
        if (blocked && absence == Absence::blocked) continue;
        absence = Absence::none;
        if (waited < (blocked ? max_delay_by_blocked_hosts : max_wait_for_hosts)) return false;
        absence = blocked ? Absence::blocked : Absence::late;
    }
    return true;
}

void StepScheduler::answer_late_host(std::size_t late) {
    obstacle_ = fmt::format(
        "the kernels wait, and within {} s the host of PE {} has neither launched a kernel, nor entered a host "
        "barrier, nor waited for its kernels or in another call: it computes for longer, or waits by other means",
        max_wait_for_hosts.count(), late);
    for (StepTurns::Slot& slot : turns_.slots) slot.late_pe = static_cast<int>(late);
    answer_all(Answer::late_host);
}

bool StepScheduler::is_blocked(std::size_t pe) const {
    if (turns_.host_synchronizes[pe].load(std::memory_order_acquire)) return true;
    const std::uint64_t entered = turns_.entered[pe].load(std::memory_order_acquire);
    for (std::size_t other = 0; other < pes_.size(); ++other)
        if (turns_.entered[other].load(std::memory_order_acquire) < entered) return true;
    return false;
}

// Wait loops may end by themselves. Then a host may still write what the kernels wait for.
bool StepScheduler::resolve_idle() {
    changed_by_ = -1;
    if (!std::exchange(idle_answered_, true)) {
        looked_again_ = false;
        answer_all(Answer::idle);
        return true;
    }
    std::size_t acting = 0;
    while (acting < pes_.size() && is_blocked(acting)) ++acting;
    const std::chrono::nanoseconds now = os_.now();
    if (acting < pes_.size() && now < last_event_ + max_wait_for_hosts) {
        looked_again_ = false;
        if (now < next_look_) return false;
        next_look_ = now + longest_sleep;
        answer_all(Answer::look_again);
    } else if (acting == pes_.size() && !std::exchange(looked_again_, true)) {
        // What a host did before it blocked shows now.
        answer_all(Answer::look_again);
    } else if (acting < pes_.size() && !turns_.host_waits[acting].load(std::memory_order_relaxed)) {
        answer_late_host(acting);
    } else {
        answer_all(Answer::deadlock);
    }
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
    last_ = run_.choose(enabled, preferred_, [this] { return waiting(); });
    idle_answered_ = false;
    const auto& [pe, launch, local] = threads_[static_cast<std::size_t>(last_)];
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
    if (run_.steps() >= turns_.max_steps) {
        abandoned_ = abandoned_ || !run_.decided();
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
        if (!advance()) sleep_on(os_, turns_.events, events, longest_sleep);
    }
    run_.end();
}

}  // namespace npushmem::npu::check
