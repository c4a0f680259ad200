// SPDX-License-Identifier: BSD-3-Clause
#include "core/npu/check/cores/core_scheduling.hpp"

#include <algorithm>
#include <chrono>
#include <limits>
#include <utility>

#include "core/npu/source_line.hpp"
#include "npushmem/npu/error.hpp"

namespace npushmem::npu::check {
namespace {

// A core that has made so many calls without a wait lets others run: it may poll for their work.
constexpr std::uint64_t calls_per_turn = 4096;
// After so many such turns, deferred commands and signals happen, too.
constexpr std::uint64_t turns_per_release = 16;
// Stands for the unknown memory that a yield waits for.
constexpr std::uintptr_t yielded = 1;

constexpr std::size_t max_probes = 8;
// Keeps the lines apart that read the same word.
constexpr std::uintptr_t line_factor = std::uintptr_t{1} << 48;

// A grant that ends because the loop does something that others may see counts as so many polls at least.
constexpr std::uint64_t polls_per_long_round = 256;
// A command that a loop waits for takes longer than a read.
constexpr std::uint64_t polls_per_command = 16;
// So often a core polls at one line while the schedule delays others. Loops that give up have mostly smaller bounds.
constexpr std::uint64_t max_polls_alone = 256;

std::uintptr_t key_of(std::uintptr_t what, const SourceLocation& where) { return what + where.line() * line_factor; }

// Multiplicative hashing: the upper bits depend on all bits of the key.
std::size_t slot_of(std::uintptr_t what) { return static_cast<std::size_t>(what * 0x9e3779b97f4a7c15U >> 32); }

}  // namespace

bool WaitLoop::read(std::uintptr_t what, std::uint64_t value, std::uint64_t version) {
    Entry& entry = entry_of(what);
    const bool known = entry.epoch == epoch_;
    const bool same = known && entry.value == value;
    const bool repeated = same && entry.version == version;
    // Another loop may follow, and its words are not known.
    if (!same && recognised()) changed();
    if (!same) end_row();
    entry = {what, value, version, epoch_, repeated ? row_ : 0};
    if (repeated && repeats_ < std::numeric_limits<int>::max()) ++repeats_;
    return repeated && recognised();
}

bool WaitLoop::repeats(std::uintptr_t what) {
    const Entry* found = probe(what);
    return found != nullptr && found->epoch == epoch_ && found->what == what && found->row == row_;
}

void WaitLoop::end_row() {
    ++row_;
    repeats_ = 0;
}

void WaitLoop::changed() {
    ++epoch_;
    end_row();
}

WaitLoop::Entry* WaitLoop::probe(std::uintptr_t what) {
    if (entries_.empty()) return nullptr;
    const std::size_t begin = slot_of(what);
    for (std::size_t i = 0; i < max_probes; ++i) {
        Entry& entry = entries_[(begin + i) % entries_.size()];
        if (entry.epoch != epoch_ || entry.what == what) return &entry;
    }
    return nullptr;
}

WaitLoop::Entry& WaitLoop::entry_of(std::uintptr_t what) {
    Entry* found = probe(what);
    while (found == nullptr) {
        grow();
        found = probe(what);
    }
    return *found;
}

void WaitLoop::grow() {
    if (entries_.size() == max_size) return changed();
    std::vector<Entry> old(entries_.empty() ? first_size : entries_.size() * 4);
    old.swap(entries_);
    for (const Entry& entry : old) {
        if (entry.epoch != epoch_) continue;
        if (Entry* place = probe(entry.what); place != nullptr) *place = entry;
    }
}

void CoreScheduling::enter(const SourceLocation& where) {
    domain_.calls.enter(place_, where);
    if (++calls_ >= calls_per_turn && granted_polls_ == 0) preempt(where);
}

void CoreScheduling::switch_core(const SourceLocation& where) {
    end_repeating();
    calls_ = 0;
    context_->runner->reschedule(*context_, where);
}

void CoreScheduling::preempt(const SourceLocation& where) {
    calls_ = 0;
    run_deferred();
    if (!domain_.steps.active() && ++turns_ % turns_per_release == 0) {
        queues_.run_all();
        domain_.signals.deliver_from(core_.number);
        static_cast<void>(domain_.progress());
    }
    context_->runner->preempt(*context_, where);
}

// In a wait loop the first round has offered this place already.
void CoreScheduling::schedule_point() {
    if (!domain_.steps.active() && loop_.repeats()) return;
    if (domain_.control.switch_core()) switch_core(last_call());
}

void CoreScheduling::write_point(std::uintptr_t stored) {
    const bool updates = stored != 0 && std::exchange(last_word_, 0) == stored;
    const bool alone = std::exchange(alone_, false);
    if ((updates || alone) && domain_.control.delays_others()) switch_core(last_call());
}

void CoreScheduling::wait_until(const std::function<bool()>& ready) {
    if (ready()) return begin_ordered_step();
    end_repeating();
    detail::WaitPredicate predicate{ready, "the commands and signals of the core", core_.pe};
    if (Status done = context_->runner->await_predicate(*context_, predicate, last_call()); !done.ok())
        throw KernelError(done);
}

void CoreScheduling::wait_for(const detail::Condition& condition, const SourceLocation& where) {
    calls_ = 0;
    end_repeating();
    context_->runner->await_word(*context_, condition, std::chrono::nanoseconds{0}, where);
    domain_.steps.wait(condition);
}

void CoreScheduling::deliver_signals() {
    if (!domain_.steps.active()) return domain_.signals.deliver_from(core_.number);
    if (!domain_.signals.any_from(core_.number) && !domain_.signals.any_arrived(core_.number)) return;
    wait_until([this] { return !domain_.signals.any_from(core_.number); });
    domain_.signals.join_arrivals(core_.number);
}

void CoreScheduling::run_deferred() {
    if (!domain_.control.run_deferred_before_wait()) return;
    queues_.run_all();
    domain_.signals.deliver_from(core_.number);
}

bool CoreScheduling::repeats(std::uintptr_t what, const Read& read) {
    last_read_ = read;
    last_word_ = number_of(read.address);
    // The same word at another line is not another round of the loop.
    const std::uint64_t epoch = loop_.epoch();
    const bool waits = loop_.read(key_of(what, read.where), read.value, domain_.version.changes());
    if (loop_.epoch() != epoch) domain_.steps.forget_reads();
    if (!loop_.repeats()) leave_loop();
    return waits;
}

bool CoreScheduling::repeats_alone(std::uintptr_t what, const SourceLocation& where) {
    return granted_polls_ > 0 && loop_.repeats(key_of(what, where));
}

bool CoreScheduling::goes_on_alone() {
    if (!domain_.control.delays_others()) return false;
    const SourceLocation where = last_call();
    std::uint64_t& polls = polls_at_[key_of(number_of(where.file_name()), where)];
    alone_ = polls < max_polls_alone;
    if (alone_) ++polls;
    return alone_;
}

bool CoreScheduling::must_wait() {
    if (granted_polls_ == 0) return !goes_on_alone();
    const std::uint64_t polls = 1 + queues_.take_run_alone() * polls_per_command;
    polls_alone_ += polls;
    granted_polls_ -= std::min(granted_polls_, polls);
    if (granted_polls_ > 0) return false;
    domain_.control.loops()->used_up(line_, grant_);
    used_up_ = true;
    domain_.steps.set_repeating(false);
    return true;
}

void CoreScheduling::end_repeating() {
    if (granted_polls_ == 0) return;
    domain_.control.loops()->ended_behind(line_, grant_ - granted_polls_);
    polls_alone_ += polls_per_long_round;
    ++ended_grants_;
    granted_polls_ = 0;
    domain_.steps.set_repeating(false);
}

void CoreScheduling::leave_loop() {
    end_repeating();
    polls_alone_ = 0;
    ended_grants_ = 0;
    used_up_ = false;
}

void CoreScheduling::observe(std::uintptr_t what, const Read& read) {
    if (repeats(what, read)) wait_for_change();
}

void CoreScheduling::wait_for_change(const Read& read) {
    // Also when the launch fails meanwhile.
    struct InLoop {
        explicit InLoop(detail::CoreContext& its_core) : core(its_core) { core.in_wait_loop = true; }
        InLoop(const InLoop&) = delete;
        InLoop& operator=(const InLoop&) = delete;
        ~InLoop() {
            core.in_wait_loop = false;
            core.polled = nullptr;
        }
        detail::CoreContext& core;
    };
    run_deferred();
    if (loop_.just_recognised()) polling_ = {};
    calls_ = 0;
    if (!used_up_ && ended_grants_ >= explore::LoopBounds::max_ended_grants)
        domain_.control.loops()->cut(text_of(read.where));
    context_->polled = read.address;
    context_->polled_value = read.value;
    context_->granted_polls = 0;
    context_->polls_alone = polls_alone_;
    context_->ended_grants = ended_grants_;
    context_->loop_used_up = used_up_;
    {
        const InLoop waiting(*context_);
        context_->runner->poll_unchanged(*context_, polling_, read.where);
    }
    grant_ = granted_polls_ = context_->granted_polls;
    line_ = granted_polls_ > 0 ? explore::LoopBounds::line_of(read.where) : 0;
    domain_.steps.set_repeating(granted_polls_ > 0);
}

void CoreScheduling::yield(const SourceLocation& where) {
    if (!loop_.read(yielded, 0, domain_.version.changes())) {
        if (!goes_on_alone() && (!domain_.steps.active() || !loop_.repeats())) switch_core(where);
    } else if (must_wait()) {
        wait_for_change(last_read_.address != nullptr ? last_read_ : Read{nullptr, 0, where});
    }
    last_read_ = {};
}

}  // namespace npushmem::npu::check
