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
    const std::string whom = core.condition.pe < 0 ? "" : fmt::format(" from PE {}", core.condition.pe);
    return fmt::format("waited for the word at {}{} to be {} {}, last saw {} ({})", fmt::ptr(core.condition.word), whom,
                       name_of(core.condition.compare), core.condition.value, core.seen, text_of(core.where));
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

}  // namespace

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

Runner::Runner(WaitPolicy& wait_policy, WorkSource& source, Scheduler* scheduler)
    : wait_policy_(wait_policy),
      source_(source),
      scheduler_(scheduler),
      polls_(scheduler == nullptr ? wait_policy.polls() : 0),
      exceptions_(&ExceptionState::current()),
      check_interval_(first_check) {
    main_.sanitizer.adopt_thread();
}

void Runner::finish_switch(boost::context::fiber&& from, Context& self) {
    Context& other = switched_from_ != nullptr ? *switched_from_ : ended_context_;
    self.sanitizer.after_switch(other.sanitizer);
    if (switched_from_ != nullptr) switched_from_->handle = std::move(from);
}

void Runner::switch_to(Context& to) {
    Context& self = *running_;
    if (&to == &self) return;
    running_ = &to;
    switched_from_ = &self;
    const ExceptionState mine = *exceptions_;
    self.sanitizer.before_switch(to.sanitizer);
    finish_switch(std::move(to.handle).resume(), self);
    *exceptions_ = mine;
}

bool Runner::yield_until_resumed(CoreContext& self) {
    switch_to(next_after(self).context);
    self.status = CoreStatus::runnable;
    return self.failure.ok() && !self.run->failed();
}

Status Runner::wait_failure(CoreContext& self) {
    return self.failure.ok() ? launch_aborted(self) : std::exchange(self.failure, Status{});
}

void Runner::yield_or_throw(CoreContext& self) {
    if (!yield_until_resumed(self)) [[unlikely]]
        throw KernelError(wait_failure(self));
}

void Runner::add(RunningLaunch& run, CoreSet& cores) {
    for (int i = 0; i < run.size(); ++i) {
        CoreContext& core = run.core(i);
        core.runner = this;
        cores.start(i, [this, &core](boost::context::fiber&& from) { return begin(core, std::move(from)); });
        insert(core);
    }
    if (run.timeout().count() != 0) run.fix_deadline(now());
}

void Runner::run(const std::function<void(RunningLaunch&)>& on_end) {
    while (ring_ != nullptr || !ended_.empty()) {
        while (!ended_.empty()) {
            RunningLaunch* run = ended_.back();
            ended_.pop_back();
            on_end(*run);
        }
        if (ring_ != nullptr) switch_to(next_after(*ring_->previous).context);
    }
}

boost::context::fiber Runner::begin(CoreContext& self, boost::context::fiber&& from) {
    finish_switch(std::move(from), self.context);
    *exceptions_ = {};
    self.run->execute(self);
    return end(self);
}

// The last action of the context: the context that resumes next may treat it as destroyed.
boost::context::fiber Runner::end(CoreContext& self) {
    CoreContext& after = *self.next;
    remove(self);
    const bool last = self.run->live() == 0;
    if (last) ended_.push_back(self.run);
    const bool to_thread = last || ring_ == nullptr || SanitizerFiber::ends_in_thread;
    Context& to = to_thread ? main_ : next_after(*after.previous).context;
    running_ = &to;
    switched_from_ = nullptr;
    SanitizerFiber::before_last_switch(to.sanitizer);
    return std::move(to.handle);
}

void Runner::insert(CoreContext& core) {
    if (ring_ == nullptr) ring_ = core.next = core.previous = &core;
    core.previous = ring_->previous;
    core.next = ring_;
    core.previous->next = core.next->previous = &core;
    ++ring_size_;
}

void Runner::remove(CoreContext& core) {
    core.previous->next = core.next;
    core.next->previous = core.previous;
    if (ring_ == &core) ring_ = core.next == &core ? nullptr : core.next;
    core.next = core.previous = nullptr;
    --ring_size_;
}

bool Runner::poll_briefly(CoreContext& self) {
    // Other launches and deadlines must not starve: when they are due, the wait takes the slow path.
    if (ring_size_ != 1 || source_.has_work() || (switches_ + 1) % switches_per_check == 0) return false;
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
    yield_or_throw(self);
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
                            const Where& where) {
    self.condition = condition;
    self.seen = seen;
    self.where = where;
    self.status = CoreStatus::awaiting_word;  // for describe()
    check_poll(self, condition.pe, polling);
    poll(self, ++polling.round, where);
}

void Runner::check_poll(CoreContext& self, int pe, PollState& polling) const {
    const nanoseconds time = now();
    const nanoseconds timeout = self.run->default_wait_timeout();
    if (timeout.count() != 0 && time >= polling.began + timeout) throw KernelError(timed_out(self, timeout));
    if (time < std::max(polling.began, polling.liveness_checked) + first_check) return;
    polling.liveness_checked = time;
    if (Status peer_status = wait_policy_.peer_status(pe); !peer_status.ok())
        throw KernelError(peer_status.within(describe(self)));
}

void Runner::poll_unchanged(CoreContext& self, PollState& polling, const Where& where) {
    self.where = where;
    self.status = CoreStatus::polling;
    self.polls = ++polling.round;
    if (scheduler_ == nullptr) {
        if (polling.round == 1) polling = {now(), 1};
        check_poll(self, -1, polling);
    } else {
        self.idle_polls = max_idle_polls;
        self.polled_version = scheduler_->version();
    }
    yield_or_throw(self);
}

void Runner::poll(CoreContext& self, std::uint64_t round, const Where& where) {
    // A yield is not a poll: it resets the count of idle polls.
    if ((round == 0) != (self.polls == 0)) self.idle_polls = 0;
    self.status = CoreStatus::polling;
    self.polls = round;
    self.where = where;
    if (scheduler_ != nullptr) count_poll(self);
    yield_or_throw(self);
}

void Runner::count_poll(CoreContext& self) const {
    const std::uint64_t version = scheduler_->version();
    self.idle_polls = version == self.polled_version ? self.idle_polls + 1 : 0;
    self.polled_version = version;
}

void Runner::reschedule(CoreContext& self, const Where& where) {
    self.status = CoreStatus::runnable;
    self.where = where;
    yield_or_throw(self);
}

void Runner::preempt(CoreContext& self, const Where& where) {
    self.where = where;
    check_limits(nanoseconds{0});
    reschedule(self, where);
}

CoreContext& Runner::next_after(CoreContext& self) {
    if (++switches_ % switches_per_check == 0) {
        check_limits(nanoseconds{0});
        if (source_.has_work()) source_.adopt();
    }
    if (scheduler_ != nullptr) [[unlikely]]
        return scheduled_after(self);
    CoreContext* found = find_ready(self);
    while (found == nullptr) found = idle(self);
    if (found->status != CoreStatus::polling) {
        polls_in_a_row_ = 0;
    } else if (++polls_in_a_row_ >= ring_size_) {
        // Every core has polled without success.
        polls_in_a_row_ = 0;
        pause(*found);
    }
    return *found;
}

bool Runner::can_run(CoreContext& core) const {
    if (core.run->failed() || core.status != CoreStatus::polling) return core.ready();
    // Round 0 is a plain yield: the memory that this core reads is unknown. Below max_idle_polls, idle polls may not be
    // a loop.
    return core.polls == 0 || core.idle_polls < max_idle_polls || core.polled_version != scheduler_->version();
}

CoreContext& Runner::scheduled_after(CoreContext& self) {
    for (;;) {
        runnable_.clear();
        CoreContext* core = self.next;
        for (std::size_t i = 0; i < ring_size_; ++i, core = core->next) {
            if (can_run(*core)) runnable_.push_back(core);
        }
        if (!runnable_.empty()) return scheduler_->choose(runnable_);
        scheduler_->unblock();
    }
}

// Returns a polling core only if no other core can run.
CoreContext* Runner::find_ready(CoreContext& after) {
    CoreContext* polling = nullptr;
    CoreContext* core = after.next;
    for (std::size_t i = 0; i < ring_size_; ++i, core = core->next) {
        if (core->status != CoreStatus::polling || core->run->failed()) {
            if (core->ready()) return core;
        } else if (polling == nullptr) {
            polling = core;
        }
    }
    return polling;
}

void Runner::pause(const CoreContext& polling) {
    wait_policy_.pause(polling.polls);
    if (source_.has_work()) source_.adopt();
    if (polling.polls % 256 == 0 || source_.stopping()) check_limits(nanoseconds{0});
}

// Waits until a core can run and returns it. Returns null when something else has changed, and the caller must look at
// all cores again.
CoreContext* Runner::idle(CoreContext& after) {
    if (source_.stopping()) check_limits(nanoseconds{0});
    if (source_.has_work() && source_.adopt()) return nullptr;
    for (int i = 0; i < polls_; ++i) {
        if (CoreContext* found = find_ready(after); found != nullptr) {
            check_interval_ = first_check;
            return found;
        }
    }
    const nanoseconds interval = std::min(check_interval_, shortest_timeout());
    CoreContext* found = nullptr;
    const auto changed = [&] { return (found = find_ready(after)) != nullptr || source_.has_work(); };
    if (wait_policy_.until(changed, interval) == Code::ok) {
        check_interval_ = first_check;
        return found;
    }
    check_interval_ = std::min(check_interval_ * 2, longest_check);
    check_limits(interval);
    return nullptr;
}

nanoseconds Runner::shortest_timeout() {
    nanoseconds shortest = longest_check;
    CoreContext* core = ring_;
    for (std::size_t i = 0; i < ring_size_; ++i, core = core->next) {
        if (core->timeout.count() != 0) shortest = std::min(shortest, core->timeout);
        if (core->run->timeout().count() != 0) shortest = std::min(shortest, core->run->timeout());
    }
    return std::max(shortest, nanoseconds{1});
}

void Runner::check_limits(nanoseconds waited) {
    const nanoseconds time = now();
    CoreContext* core = ring_;
    for (std::size_t i = 0; i < ring_size_; ++i, core = core->next) {
        if (source_.stopping()) core->run->fail(nullptr, {Code::aborted, "the device is being destroyed"});
        check_launch(*core, time);
        check_wait(*core, time, waited);
    }
}

void Runner::check_launch(CoreContext& core, nanoseconds time) {
    if (core.run->failed() || core.run->deadline().count() == 0 || time < core.run->deadline()) return;
    if (scheduler_ != nullptr && scheduler_->on_deadline()) return;
    const std::chrono::duration<double> limit = core.run->timeout();
    core.run->fail(&core, {Code::timeout, fmt::format("the launch has not ended within its deadline of {} s: {}",
                                                      limit.count(), describe_all(*core.run))});
}

void Runner::check_wait(CoreContext& core, nanoseconds time, nanoseconds waited) {
    const bool on_peer = core.status == CoreStatus::awaiting_word || core.status == CoreStatus::awaiting_predicate;
    if (!on_peer && (core.status != CoreStatus::awaiting_core_barrier || core.run->awaits_peer())) return;
    // Only long waits read the clock: the deadline is computed at the first check, counted back by the time waited.
    if (core.timeout.count() != 0 && core.deadline.count() == 0) core.deadline = time + core.timeout - waited;
    if (core.timeout.count() != 0 && time >= core.deadline) core.failure = timed_out(core, core.timeout);
    if (!on_peer) return;
    const int pe = core.status == CoreStatus::awaiting_word ? core.condition.pe : core.predicate->pe;
    if (Status peer_status = wait_policy_.peer_status(pe); !peer_status.ok())
        core.failure = peer_status.within(describe(core));
}

}  // namespace npushmem::npu::detail
