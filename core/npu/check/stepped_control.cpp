// SPDX-License-Identifier: BSD-3-Clause
#include "core/npu/check/stepped_control.hpp"

#include <algorithm>
#include <utility>

#include "core/npu/check/pipes.hpp"

namespace npushmem::npu::check {

using detail::CoreContext;
using explore::ThreadId;

namespace {

// After so many steps in a row another thread comes first in the default order: the one that runs may wait for it in a
// loop that is not recognised.
constexpr int max_turn = 256;

}  // namespace

void LoopReads::add(const explore::MemoryAccess& read) {
    const auto same = [&](const auto& known) { return known.begin <= read.begin && read.end <= known.end; };
    if (everything_ || std::ranges::any_of(reads_, same)) return;
    everything_ = reads_.size() == max_reads;
    reads_.push_back(read);
}

bool LoopReads::touched_by(const explore::Step& step) const {
    return std::ranges::any_of(step.accesses, [this](const explore::MemoryAccess& access) {
        const auto conflicts = [&](const auto& read) { return access.conflicts(read); };
        return access.write && (everything_ || std::ranges::any_of(reads_, conflicts));
    });
}

void LoopReads::clear() {
    reads_.clear();
    everything_ = false;
}

SteppedControl::SteppedControl(explore::Decisions& decisions, std::uint64_t max_steps)
    : JobControl({.kind = Schedule::Kind::explore}), decisions_(decisions), max_steps_(max_steps) {
    steps().activate();
}

ThreadId SteppedControl::add_thread(const Thread& thread) {
    threads_.push_back(thread);
    return static_cast<ThreadId>(threads_.size()) - 1;
}

// At the first choice all cores are able, in the order of their numbers.
void SteppedControl::register_cores(const std::vector<CoreContext*>& all) {
    for (CoreContext* core : all) {
        const auto number = static_cast<std::uint32_t>(cores_.size());
        thread_of_[core] = add_thread({core, number, Pipe::scalar, 0});
        cores_.emplace_back();
    }
}

bool SteppedControl::failing() const {
    return std::ranges::any_of(thread_of_, [](const auto& core) { return core.first->run->failed(); });
}

std::vector<ThreadId> SteppedControl::find_enabled(const std::vector<CoreContext*>& able) {
    std::vector<ThreadId> enabled;
    for (const CoreContext* core : able) enabled.push_back(thread_of_.at(core));
    for (std::uint32_t core = 0; core < cores_.size(); ++core) {
        const CommandQueues* queues = queues_of(core);
        for (std::size_t pipe = 1; queues != nullptr && pipe < pipes_per_core; ++pipe) {
            if (!queues->can_run(static_cast<Pipe>(pipe))) continue;
            ThreadId& thread = cores_[core].pipes[pipe];
            if (thread < 0) thread = add_thread({nullptr, core, static_cast<Pipe>(pipe), 0});
            enabled.push_back(thread);
        }
    }
    for (PendingSignal& signal : domain().signals.in_flight()) {
        if (signal.thread < 0)
            signal.thread = add_thread({nullptr, signal.core - domain().cores.first(), Pipe::scalar, 0});
        enabled.push_back(signal.thread);
    }
    std::ranges::sort(enabled);
    return enabled;
}

ThreadId SteppedControl::preferred() const { return turn_ < max_turn ? last_ : last_ + 1; }

ThreadId SteppedControl::decide(const std::vector<ThreadId>& enabled) {
    const std::uint64_t step = steps_taken_++;
    const ThreadId preferred = this->preferred();
    const ThreadId usual = explore::default_order(enabled, preferred).front();
    ThreadId chosen = usual;
    if (decided_) chosen = decisions_.choose(enabled, preferred);
    if (decided_ && decisions_.redundant()) {
        decided_ = false;
        decisions_.end_run(waiting());
    }
    if (chosen != usual) deviations_.push_back({step, chosen});
    begin_step(chosen);
    return chosen;
}

void SteppedControl::begin_step(ThreadId thread) {
    turn_ = thread == last_ ? turn_ + 1 : 1;
    running_ = last_ = thread;
    steps().begin_step({thread, ++threads_[static_cast<std::size_t>(thread)].steps});
}

void SteppedControl::end_step() {
    if (running_ < 0) return;
    explore::Step step = steps().end_step();
    translate(step);
    record_accesses(step);
    running_ = -1;
    if (decided_) decisions_.executed(std::move(step));
}

void SteppedControl::record_accesses(const explore::Step& step) {
    const Thread& thread = threads_[static_cast<std::size_t>(running_)];
    LoopReads& reads = cores_[thread.core].reads;
    for (const explore::MemoryAccess& access : step.accesses)
        if (!access.write) reads.add(access);
    wake_polling(step);
}

void SteppedControl::wake_polling(const explore::Step& step) {
    if (std::ranges::none_of(step.accesses, &explore::MemoryAccess::write)) return;
    for (std::size_t core = 0; core < cores_.size(); ++core) {
        if (threads_[core].context->status != detail::CoreStatus::polling || !cores_[core].reads.touched_by(step))
            continue;
        ++cores_[core].wakes;
        cores_[core].reads.clear();
    }
}

void SteppedControl::run_agent(ThreadId id) {
    const Thread thread = threads_[static_cast<std::size_t>(id)];
    if (thread.pipe == Pipe::scalar)
        domain().signals.deliver(id);
    else
        queues_of(thread.core)->run_next(thread.pipe);
}

std::vector<explore::Waiting> SteppedControl::waiting() const {
    std::vector<explore::Waiting> all;
    for (std::size_t core = 0; core < cores_.size(); ++core) {
        CoreContext& context = *threads_[core].context;
        if (context.next == nullptr || context.status != detail::CoreStatus::awaiting_word || context.ready()) continue;
        StepRecorder recorder;
        recorder.wait(context.condition);
        explore::Step step = recorder.end_step();
        translate(step);
        all.push_back({static_cast<ThreadId>(core), step.guard});
    }
    return all;
}

CoreContext* SteppedControl::choose(const std::vector<CoreContext*>& able) {
    if (cores_.empty()) register_cores(able);
    end_step();
    if (failing()) decided_ = false;
    if (decided_ && steps_taken_ == max_steps_) ends().on_step_limit(max_steps_);
    const ThreadId chosen = decide(find_enabled(able));
    if (chosen < 0) return nullptr;
    CoreContext* core = threads_[static_cast<std::size_t>(chosen)].context;
    if (core == nullptr) {
        run_agent(chosen);
        end_step();
        return nullptr;
    }
    count_idle_polls(*core);
    return core;
}

void SteppedControl::unblock() {
    end_step();
    const std::vector<ThreadId> enabled = find_enabled({});
    if (enabled.empty() && !other_processes()) return JobControl::unblock();
    const ThreadId chosen = decide(enabled);
    if (chosen < 0) return;
    run_agent(chosen);
    end_step();
}

std::uint64_t SteppedControl::version(const CoreContext& core) const {
    const auto found = thread_of_.find(&core);
    const std::uint64_t wakes = found == thread_of_.end() ? 0 : cores_[static_cast<std::size_t>(found->second)].wakes;
    return wakes + poll_rounds();
}

void SteppedControl::end_run() {
    end_step();
    if (std::exchange(decided_, false)) decisions_.end_run({});
}

}  // namespace npushmem::npu::check
