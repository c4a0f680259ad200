// SPDX-License-Identifier: BSD-3-Clause
#include "core/npu/runner.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <map>
#include <utility>

#include "core/npu/source_line.hpp"

namespace npushmem::npu::detail {
namespace {

using std::chrono::milliseconds;
using std::chrono::nanoseconds;

// Intervals between checks of long waits for deadlines and dead peers. A liveness check may cost microseconds per PE.
constexpr nanoseconds first_check = milliseconds(10);
constexpr nanoseconds longest_check = milliseconds(250);
// Cores that are always runnable must not escape their deadline, nor starve other launches.
constexpr std::uint32_t switches_per_check = 4096;

nanoseconds now() { return std::chrono::steady_clock::now().time_since_epoch(); }

std::string describe(const CoreContext& core) {
    if (core.status == CoreStatus::awaiting_core_barrier)
        return fmt::format("waited in core_barrier ({})", text_of(core.where));
    if (core.status == CoreStatus::awaiting_predicate) {
        const std::string to = core.predicate->pe < 0 ? "" : fmt::format(" to PE {}", core.predicate->pe);
        return fmt::format("waited for {}{} to complete ({})", core.predicate->what, to, text_of(core.where));
    }
    if (core.status == CoreStatus::polling || core.status == CoreStatus::runnable) {
        const std::string word = core.polled == nullptr ? std::string{}
                                                        : fmt::format(", polling the word at {}, which stays {}",
                                                                      fmt::ptr(core.polled), core.polled_value);
        return core.where.line() == 0 ? "still running" : fmt::format("at {}{}", text_of(core.where), word);
    }
    const std::string whom = core.condition.from.pe < 0 ? "" : fmt::format(" from PE {}", core.condition.from.pe);
    return fmt::format("waited for the word at {}{} to be {} {}, last saw {} ({})", fmt::ptr(core.condition.word), whom,
                       name_of(core.condition.compare), core.condition.value, core.seen, text_of(core.where));
}

LongWait long_wait_of(const CoreContext& core, nanoseconds began) {
    if (core.status == CoreStatus::awaiting_predicate)
        return {core.predicate->what, nullptr, core.predicate->pe, core.where, began};
    if (core.status == CoreStatus::awaiting_word)
        return {"a value in symmetric memory", core.condition.word, core.condition.from.pe, core.where, began};
    return {"the other cores of the launch", nullptr, -1, core.where, began};
}

// Describes where every core of a launch is. Cores at the same place share one entry.
std::string describe_all(RunningLaunch& run) {
    std::map<std::string, std::vector<int>> cores;
    for (int i = 0; i < run.size(); ++i)
        if (run.core(i).next != nullptr) cores[describe(run.core(i))].push_back(i);
    std::string text;
    for (const auto& [what, who] : cores)
        text += fmt::format("{}core{} {} {}", text.empty() ? "" : "; ", who.size() > 1 ? "s" : "", fmt::join(who, ", "),
                            what);
    return text;
}

Status launch_aborted(const CoreContext& core) {
    return {Code::aborted, "the launch is being aborted: " + core.run->failure().message()};
}

Status timed_out(const CoreContext& core, nanoseconds timeout) {
    const std::chrono::duration<double> limit = timeout;
    return {Code::timeout, fmt::format("timed out after {} s: {}", limit.count(), describe(core))};
}

Status wait_failure(CoreContext& self) {
    return self.failure.ok() ? launch_aborted(self) : std::exchange(self.failure, Status{});
}

// Counts consecutive polls that saw the same version of the memory.
void count_poll(CoreContext& self, const Scheduler& scheduler) {
    const std::uint64_t version = scheduler.version(self);
    self.idle_polls = version == self.polled_version ? self.idle_polls + 1 : 0;
    self.polled_version = version;
}

// Whether a core can continue under a scheduler.
bool can_run(CoreContext& core, const Scheduler& scheduler) {
    if (core.run->failed() || core.status != CoreStatus::polling) return core.ready();
    // Round 0 is a plain yield: the memory that this core reads is unknown. Below max_idle_polls, idle polls may not be
    // a loop.
    return core.polls == 0 || core.idle_polls < max_idle_polls || core.polled_version != scheduler.version(core);
}

}  // namespace

void time_out(CoreContext& core) { core.failure = timed_out(core, core.timeout); }

bool CoreContext::ready() {
    if (run->failed() || !failure.ok()) return true;
    switch (status) {
        case CoreStatus::awaiting_word:
            seen = acquire_word(condition.word);
            return satisfied(seen, condition.compare, condition.value);
        case CoreStatus::awaiting_predicate: return predicate->fulfilled || (predicate->fulfilled = predicate->ready());
        case CoreStatus::awaiting_core_barrier: return run->barriers_passed() > barrier;
        case CoreStatus::runnable:
        case CoreStatus::polling: return true;
    }
    return true;
}

void CoreRing::insert(CoreContext& core) {
    if (first_ == nullptr) first_ = core.next = core.previous = &core;
    core.previous = first_->previous;
    core.next = first_;
    core.previous->next = core.next->previous = &core;
    ++size_;
}

void CoreRing::remove(CoreContext& core) {
    core.previous->next = core.next;
    core.next->previous = core.previous;
    if (first_ == &core) first_ = core.next == &core ? nullptr : core.next;
    core.next = core.previous = nullptr;
    --size_;
}

CoreContext* CoreRing::find_ready(CoreContext& after) const {
    CoreContext* polling = nullptr;
    CoreContext* core = after.next;
    for (std::size_t i = 0; i < size_; ++i, core = core->next) {
        if (core->status != CoreStatus::polling || core->run->failed()) {
            if (core->ready()) return core;
        } else if (polling == nullptr) {
            polling = core;
        }
    }
    return polling;
}

WaitLimits::WaitLimits(const CoreRing& ring, WaitPolicy& wait_policy, WorkSource& source, Scheduler* scheduler)
    : ring_(ring),
      wait_policy_(wait_policy),
      source_(source),
      scheduler_(scheduler),
      check_interval_(first_check),
      observation_(wait_policy) {}

bool WaitLimits::check_poll(CoreContext& self, const PeGroup& needs, PollState& polling) const {
    const nanoseconds time = now();
    const nanoseconds timeout = self.run->default_wait_timeout();
    if (timeout.count() != 0 && time >= polling.began + timeout) throw KernelError(timed_out(self, timeout));
    if (time < std::max(polling.began, polling.liveness_checked) + first_check) return false;
    polling.liveness_checked = time;
    if (Status peer_status = wait_policy_.peer_status(needs); !peer_status.ok())
        throw KernelError(peer_status.within(describe(self)));
    return true;
}

nanoseconds WaitLimits::shortest_timeout() const {
    nanoseconds shortest = longest_check;
    CoreContext* core = ring_.first();
    for (std::size_t i = 0; i < ring_.size(); ++i, core = core->next) {
        if (core->timeout.count() != 0) shortest = std::min(shortest, core->timeout);
        if (core->run->timeout().count() != 0) shortest = std::min(shortest, core->run->timeout());
    }
    return std::max(shortest, nanoseconds{1});
}

void WaitLimits::check(nanoseconds waited) {
    const nanoseconds time = now();
    CoreContext* core = ring_.first();
    for (std::size_t i = 0; i < ring_.size(); ++i, core = core->next) {
        if (source_.stopping()) core->run->fail(nullptr, {Code::aborted, "the device is being destroyed"});
        check_launch(*core, time);
        check_wait(*core, time, waited);
    }
}

void WaitLimits::check_launch(CoreContext& core, nanoseconds time) {
    if (core.run->failed() || core.run->deadline().count() == 0 || time < core.run->deadline()) return;
    if (scheduler_ != nullptr && scheduler_->on_deadline()) return;
    const std::chrono::duration<double> limit = core.run->timeout();
    core.run->fail(&core, {Code::timeout, fmt::format("the launch has not ended within its deadline of {} s: {}",
                                                      limit.count(), describe_all(*core.run))});
}

void WaitLimits::check_wait(CoreContext& core, nanoseconds time, nanoseconds waited) {
    const bool on_peer = core.status == CoreStatus::awaiting_word || core.status == CoreStatus::awaiting_predicate;
    if (!on_peer && (core.status != CoreStatus::awaiting_core_barrier || core.run->awaits_peer())) return;
    // Only long waits read the clock: the deadline is computed at the first check, counted back by the time waited.
    // A scheduler ends the waits that have no end.
    const bool limited = core.timeout.count() != 0 && scheduler_ == nullptr;
    if (limited && core.deadline.count() == 0) core.deadline = time + core.timeout - waited;
    if (limited && time >= core.deadline) time_out(core);
    if (!on_peer) return;
    const PeGroup needs =
        core.status == CoreStatus::awaiting_word ? core.condition.from.needs : PeGroup::one(core.predicate->pe);
    if (Status peer_status = wait_policy_.peer_status(needs); !peer_status.ok())
        core.failure = peer_status.within(describe(core));
}

nanoseconds WaitLimits::interval() const { return std::min(check_interval_, shortest_timeout()); }

void WaitLimits::reset_interval() {
    check_interval_ = first_check;
    observation_.end();
}

void WaitLimits::check_after(nanoseconds interval) {
    check_interval_ = std::min(check_interval_ * 2, longest_check);
    check(interval);
    report_wait(interval);
}

// Other cores of a launch wait in core_barrier for the one that waits for a PE, so the latter is reported.
void WaitLimits::report_wait(nanoseconds waited) {
    if (!observation_.reported()) idle_since_ = now() - waited;
    CoreContext* core = ring_.first();
    for (std::size_t i = 0; i < ring_.size() && core->status == CoreStatus::awaiting_core_barrier; ++i)
        core = core->next;
    observation_.report(long_wait_of(*core, idle_since_));
}

Runner::Runner(WaitPolicy& wait_policy, WorkSource& source, Scheduler* scheduler)
    : wait_policy_(wait_policy),
      source_(source),
      scheduler_(scheduler),
      polls_(scheduler == nullptr ? wait_policy.polls() : 0),
      limits_(ring_, wait_policy, source, scheduler) {}

bool Runner::yield_until_resumed(CoreContext& self) {
    switch_.to(next_after(self).context);
    self.status = CoreStatus::runnable;
    return self.failure.ok() && !self.run->failed();
}

void Runner::yield_or_throw(CoreContext& self) {
    if (!yield_until_resumed(self)) [[unlikely]]
        throw KernelError(wait_failure(self));
}

void Runner::use(Scheduler* scheduler) {
    scheduler_ = scheduler;
    polls_ = scheduler == nullptr ? wait_policy_.polls() : 0;
    limits_.use(scheduler);
}

void Runner::add(RunningLaunch& run, CoreSet& cores) {
    if (run.scheduler() != nullptr) use(run.scheduler());
    for (int i = 0; i < run.size(); ++i) {
        CoreContext& core = run.core(i);
        core.runner = this;
        cores.start(i, [this, &core](boost::context::fiber&& from) { return begin(core, std::move(from)); });
        ring_.insert(core);
    }
    if (run.timeout().count() != 0) run.fix_deadline(now());
}

void Runner::run(const std::function<void(RunningLaunch&)>& on_end) {
    while (!ring_.empty() || !ended_.empty()) {
        while (!ended_.empty()) {
            RunningLaunch* run = ended_.back();
            ended_.pop_back();
            on_end(*run);
        }
        if (!ring_.empty()) switch_.to(next_after(*ring_.first()->previous).context);
    }
}

boost::context::fiber Runner::begin(CoreContext& self, boost::context::fiber&& from) {
    switch_.begin(std::move(from), self.context);
    self.run->execute(self);
    return end(self);
}

// The last action of the context: the context that resumes next may treat it as destroyed.
boost::context::fiber Runner::end(CoreContext& self) {
    CoreContext& after = *self.next;
    ring_.remove(self);
    const bool last = self.run->live() == 0;
    if (last) ended_.push_back(self.run);
    if (last && self.run->scheduler() != nullptr) use(nullptr);
    const bool to_thread = last || ring_.empty() || SanitizerFiber::ends_in_thread;
    return switch_.end(to_thread ? switch_.main() : next_after(*after.previous).context);
}

bool Runner::poll_briefly(CoreContext& self) {
    // Other launches and deadlines must not starve: when they are due, the wait takes the slow path.
    if (ring_.size() != 1 || source_.has_work() || (switches_ + 1) % switches_per_check == 0) return false;
    for (int i = 0; i < polls_; ++i) {
        self.seen = acquire_word(self.condition.word);
        if (!satisfied(self.seen, self.condition.compare, self.condition.value)) continue;
        ++switches_;
        return true;
    }
    return false;
}

std::uint64_t Runner::await_word(CoreContext& self, const Condition& condition, nanoseconds timeout,
                                 const Where& where) {
    self.condition = condition;
    if (poll_briefly(self)) return self.seen;
    self.status = CoreStatus::awaiting_word;
    self.timeout = timeout.count() != 0 ? timeout : self.run->default_wait_timeout();
    self.deadline = nanoseconds{0};
    self.where = where;
    self.may_time_out = scheduler_ != nullptr && timeout.count() != 0;
    const bool resumed = yield_until_resumed(self);
    self.may_time_out = false;
    if (!resumed) [[unlikely]]
        throw KernelError(wait_failure(self));
    return self.seen;
}

void Runner::await_core_barrier(CoreContext& self, const Where& where) {
    if (self.run->failed()) [[unlikely]]
        throw KernelError(launch_aborted(self));
    self.barrier = self.run->barriers_passed();
    if (self.run->arrive(self)) return;
    self.status = CoreStatus::awaiting_core_barrier;
    self.timeout = self.run->default_wait_timeout();
    self.deadline = nanoseconds{0};
    self.where = where;
    yield_or_throw(self);
}

Status Runner::await_predicate(CoreContext& self, WaitPredicate& predicate, const Where& where) {
    self.status = CoreStatus::awaiting_predicate;
    self.predicate = &predicate;
    self.timeout = self.run->default_wait_timeout();
    self.deadline = nanoseconds{0};
    self.where = where;
    return yield_until_resumed(self) ? Status{} : wait_failure(self);
}

// A poll over a network takes longer than reading the clock, so every poll checks the deadline. A liveness check may
// take longer, so it runs at intervals.
void Runner::poll_condition(CoreContext& self, const Condition& condition, std::uint64_t seen, PollState& polling,
                            WaitObservation& observation, const Where& where) {
    self.condition = condition;
    self.seen = seen;
    self.where = where;
    self.status = CoreStatus::awaiting_word;  // for describe()
    if (limits_.check_poll(self, condition.from.needs, polling)) observation.report(long_wait_of(self, polling.began));
    poll(self, ++polling.round, where);
}

void Runner::poll_unchanged(CoreContext& self, PollState& polling, const Where& where) {
    self.where = where;
    self.status = CoreStatus::polling;
    self.polls = ++polling.round;
    if (scheduler_ == nullptr) {
        if (polling.round == 1) polling = {now(), 1};
        limits_.check_poll(self, {}, polling);
    } else {
        self.idle_polls = max_idle_polls;
        self.polled_version = scheduler_->version(self);
    }
    yield_or_throw(self);
}

void Runner::poll(CoreContext& self, std::uint64_t round, const Where& where) {
    // A yield is not a poll: it resets the count of idle polls.
    if ((round == 0) != (self.polls == 0)) self.idle_polls = 0;
    self.status = CoreStatus::polling;
    self.polls = round;
    self.where = where;
    if (scheduler_ != nullptr) count_poll(self, *scheduler_);
    yield_or_throw(self);
}

void Runner::reschedule(CoreContext& self, const Where& where) {
    self.status = CoreStatus::runnable;
    self.where = where;
    yield_or_throw(self);
}

void Runner::preempt(CoreContext& self, const Where& where) {
    self.where = where;
    limits_.check();
    reschedule(self, where);
}

CoreContext& Runner::next_after(CoreContext& self) {
    if (++switches_ % switches_per_check == 0) {
        limits_.check();
        if (source_.has_work()) source_.adopt();
    }
    if (scheduler_ != nullptr) [[unlikely]]
        return scheduled_after(self);
    CoreContext* found = ring_.find_ready(self);
    while (found == nullptr) found = idle(self);
    if (found->status != CoreStatus::polling) {
        polls_in_a_row_ = 0;
    } else if (++polls_in_a_row_ >= ring_.size()) {
        // Every core has polled without success.
        polls_in_a_row_ = 0;
        pause(*found);
    }
    return *found;
}

CoreContext& Runner::scheduled_after(CoreContext& self) {
    for (;;) {
        runnable_.clear();
        CoreContext* core = self.next;
        for (std::size_t i = 0; i < ring_.size(); ++i, core = core->next) {
            if (can_run(*core, *scheduler_)) runnable_.push_back(core);
        }
        CoreContext* chosen = runnable_.empty() ? scheduler_->unblock() : scheduler_->choose(runnable_);
        if (chosen != nullptr) return *chosen;
    }
}

void Runner::pause(const CoreContext& polling) {
    wait_policy_.pause(polling.polls);
    if (source_.has_work()) source_.adopt();
    if (polling.polls % 256 == 0 || source_.stopping()) limits_.check();
}

// Waits until a core can run and returns it. Returns null when something else has changed, and the caller must check
// all cores again.
CoreContext* Runner::idle(CoreContext& after) {
    if (source_.stopping()) limits_.check();
    if (source_.has_work() && source_.adopt()) return nullptr;
    for (int i = 0; i < polls_; ++i) {
        if (CoreContext* found = ring_.find_ready(after); found != nullptr) {
            limits_.reset_interval();
            return found;
        }
    }
    const nanoseconds interval = limits_.interval();
    CoreContext* found = nullptr;
    const auto changed = [&] { return (found = ring_.find_ready(after)) != nullptr || source_.has_work(); };
    if (wait_policy_.until(changed, interval) == Code::ok) {
        limits_.reset_interval();
        return found;
    }
    limits_.check_after(interval);
    return nullptr;
}

}  // namespace npushmem::npu::detail
