// SPDX-License-Identifier: BSD-3-Clause
#include "core/npu/check/job/stepped_control.hpp"

#include <algorithm>
#include <utility>

#include "core/npu/check/cores/pipes.hpp"

namespace npushmem::npu::check {

using detail::CoreContext;
using explore::ThreadId;

namespace {

// After so many steps in a row another thread comes first in the default order: the one that runs may wait for it in a
// loop that is not recognised.
constexpr int max_turn = 256;

void add_reads(const explore::Step& step, LoopReads& reads) {
    for (const explore::MemoryAccess& access : step.accesses)
        if (!access.write) reads.add(access);
}

bool waits_in_loop(const CoreContext& core) { return core.status == detail::CoreStatus::polling && core.in_wait_loop; }

// Whether the core's wait may end without what it waits for. A loop that has used up a grant never ends so.
bool may_expire(const CoreContext& core) {
    if (core.next == nullptr) return false;
    if (core.status == detail::CoreStatus::awaiting_word) return core.may_time_out;
    return waits_in_loop(core) && !core.loop_used_up && core.ended_grants < explore::LoopBounds::max_ended_grants;
}

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

std::uint64_t LoopReads::contents() const {
    std::uint64_t hash = 0;
    for (const explore::MemoryAccess& read : reads_) {
        // The checker's records are not memory.
        if (read.begin >= StepRecorder::records || synthetic_address::is(read.begin)) continue;
        for (std::uintptr_t at = read.begin / 8 * 8; at < read.end; at += 8)
            hash = (hash ^ word_in_memory(at)) * 0x9e3779b97f4a7c15U;
    }
    return hash;
}

void LoopReads::clear() {
    reads_.clear();
    everything_ = false;
}

SteppedControl::SteppedControl(explore::Decisions& decisions, explore::LoopBounds& loops, std::uint64_t max_steps)
    : JobControl({.kind = Schedule::Kind::explore}), run_(decisions), max_steps_(max_steps) {
    explore(loops);
}

ThreadId SteppedControl::add_thread(const Thread& thread) {
    threads_.push_back(thread);
    return static_cast<ThreadId>(threads_.size()) - 1;
}

// At the first choice all cores are able, in the order of their numbers.
void SteppedControl::register_cores(const std::vector<CoreContext*>& all) {
    for (CoreContext* core : all) {
        const auto number = static_cast<std::uint32_t>(cores_.size());
        thread_of_[core] = add_thread({.context = core, .core = number});
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
            if (thread < 0) thread = add_thread({.core = core, .pipe = static_cast<Pipe>(pipe)});
            enabled.push_back(thread);
        }
    }
    for (PendingSignal& signal : domain().signals.in_flight()) {
        if (signal.thread < 0) signal.thread = add_thread({.core = signal.core - domain().cores.first()});
        enabled.push_back(signal.thread);
    }
    add_expiries(able, enabled);
    std::ranges::sort(enabled);
    return enabled;
}

void SteppedControl::add_expiries(const std::vector<CoreContext*>& able, std::vector<ThreadId>& enabled) {
    for (std::uint32_t core = 0; core < cores_.size(); ++core) {
        CoreContext* context = threads_[core].context;
        if (!may_expire(*context) || std::ranges::find(able, context) != able.end()) continue;
        ThreadId& thread = cores_[core].expiry;
        if (thread < 0) thread = add_thread({.core = core, .expiry = true});
        enabled.push_back(thread);
    }
}

// The expiry reads what the core waits for: it conflicts with the step that ends the wait.
CoreContext* SteppedControl::expire(std::uint32_t core) {
    CoreContext& context = *threads_[core].context;
    const std::uintptr_t word = number_of(context.condition.word);
    steps().after({static_cast<ThreadId>(core), threads_[core].steps});
    cores_[core].expired = steps().id();
    if (context.status == detail::CoreStatus::awaiting_word) {
        steps().read(word, word + sizeof(std::uint64_t));
        detail::time_out(context);
    } else {
        context.granted_polls = loops()->grant_for(explore::LoopBounds::line_of(context.where));
    }
    return &context;
}

CoreContext* SteppedControl::run_other(ThreadId id) {
    const Thread& thread = threads_[static_cast<std::size_t>(id)];
    if (thread.expiry) return expire(thread.core);
    run_agent(id);
    end_step();
    return nullptr;
}

ThreadId SteppedControl::preferred() const { return turn_ < max_turn ? last_ : last_ + 1; }

ThreadId SteppedControl::decide(const std::vector<ThreadId>& enabled) {
    const ThreadId chosen = run_.choose(enabled, preferred(), [this] { return waiting(); });
    begin_step(chosen);
    return chosen;
}

void SteppedControl::begin_step(ThreadId thread) {
    turn_ = thread == last_ ? turn_ + 1 : 1;
    running_ = last_ = thread;
    const auto place = static_cast<std::size_t>(thread);
    steps().begin_step({thread, ++threads_[place].steps});
    if (place < cores_.size()) steps().after(std::exchange(cores_[place].expired, {}));
}

bool SteppedControl::end_step() {
    if (running_ < 0) return false;
    explore::Step step = steps().end_step();
    CoreEntry& core = cores_[threads_[static_cast<std::size_t>(running_)].core];
    if (steps().forgets_reads()) {
        core.reads.clear();
        core.untranslated.clear();
    }
    if (other_processes()) add_reads(step, core.untranslated);
    translate(step);
    add_reads(step, core.reads);
    const bool woken = wake_polling(step);
    running_ = -1;
    run_.executed(std::move(step));
    return woken;
}

bool SteppedControl::wake_polling(const explore::Step& step) {
    bool any = false;
    if (std::ranges::none_of(step.accesses, &explore::MemoryAccess::write)) return any;
    for (std::size_t core = 0; core < cores_.size(); ++core) {
        if (threads_[core].context->status != detail::CoreStatus::polling || !cores_[core].reads.touched_by(step))
            continue;
        if (running_ >= 0 && is_step_of(core)) continue;
        ++cores_[core].wakes;
        any = true;
    }
    return any;
}

bool SteppedControl::is_step_of(std::size_t core) const {
    const Thread& running = threads_[static_cast<std::size_t>(running_)];
    return running.core == core && (running.context != nullptr || running.expiry);
}

void SteppedControl::poll_alone() {
    for (std::size_t core = 0; core < cores_.size(); ++core) {
        const CoreContext& context = *threads_[core].context;
        if (context.next != nullptr && context.status == detail::CoreStatus::polling)
            cores_[core].contents = cores_[core].untranslated.contents();
    }
    static_cast<void>(begin_poll_round());
}

void SteppedControl::wake_for_hosts() {
    for (std::size_t core = 0; core < cores_.size(); ++core) {
        const CoreContext& context = *threads_[core].context;
        if (context.next == nullptr || context.status != detail::CoreStatus::polling) continue;
        if (cores_[core].contents == cores_[core].untranslated.contents()) continue;
        domain().version.changed_elsewhere();
        ++cores_[core].wakes;
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
    if (end_step()) return nullptr;
    if (failing()) run_.abandon();
    if (run_.steps() == max_steps_ && !failing()) {
        if (run_.decided())
            ends().on_step_limit(max_steps_);
        else
            ends().on_abandon();
    }
    const ThreadId chosen = decide(find_enabled(able));
    if (chosen < 0) return nullptr;
    CoreContext* core = threads_[static_cast<std::size_t>(chosen)].context;
    if (core == nullptr) return run_other(chosen);
    count_idle_polls(*core);
    return core;
}

CoreContext* SteppedControl::unblock() {
    if (end_step()) return nullptr;
    const std::vector<ThreadId> enabled = find_enabled({});
    if (enabled.empty() && !other_processes()) return JobControl::unblock();
    const ThreadId chosen = decide(enabled);
    return chosen < 0 ? nullptr : run_other(chosen);
}

// Also a loop that has used up its polls looks again if the memory has changed since.
bool SteppedControl::begin_poll_round() {
    bool any = false;
    bool others = false;
    for (std::size_t core = 0; core < cores_.size(); ++core) {
        CoreContext& context = *threads_[core].context;
        if (context.next == nullptr || context.status != detail::CoreStatus::polling) continue;
        others = others || !context.in_wait_loop;
        const std::uint64_t version = domain().version.changes();
        const bool fresh = std::exchange(cores_[core].idle_version, version) != version;
        if (!context.in_wait_loop || (context.polls_alone >= idle_polls_ && !fresh)) continue;
        const std::uint64_t left = idle_polls_ - std::min(idle_polls_, context.polls_alone);
        context.granted_polls = std::max(left, explore::LoopBounds::short_polls);
        any = true;
    }
    if (any) count_poll_round();
    return any || (others && JobControl::begin_poll_round());
}

std::uint64_t SteppedControl::version(const CoreContext& core) const {
    const auto found = thread_of_.find(&core);
    const std::uint64_t wakes = found == thread_of_.end() ? 0 : cores_[static_cast<std::size_t>(found->second)].wakes;
    return wakes + poll_rounds();
}

void SteppedControl::end_run() {
    end_step();
    run_.end();
}

}  // namespace npushmem::npu::check
