// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include <chrono>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <utility>
#include <vector>

#include "core/npu/core_context.hpp"
#include "core/npu/running_launch.hpp"
#include "npushmem/npu/remote_operations.hpp"
#include "npushmem/npu/wait_policy.hpp"

namespace npushmem::npu::detail {

// Chooses the next core to run, for modes that replay, vary or explore the order. Thread rule: only the thread of one
// runner calls it.
class Scheduler {
public:
    Scheduler() = default;
    Scheduler(const Scheduler&) = delete;
    Scheduler& operator=(const Scheduler&) = delete;
    virtual ~Scheduler() = default;

    // Returns one of `runnable`, which is not empty and in ring order after the core that ran last. Null: something
    // else has happened, and the runner shall ask again.
    virtual CoreContext* choose(const std::vector<CoreContext*>& runnable) = 0;
    // Called when no core can continue. Returns the core that continues nevertheless, or makes some core runnable, or
    // fails the launches.
    virtual CoreContext* unblock() = 0;
    // Called when the deadline of a launch has passed. Returns true if the scheduler has failed the launches, and false
    // if the runner shall fail this one.
    virtual bool on_deadline() { return false; }
    // A number that changes whenever memory changes that this core may poll. A polling core need not run again while it
    // stays the same.
    [[nodiscard]] virtual std::uint64_t version(const CoreContext& core) const = 0;
};

// The runner's interface to the queues of launches.
class WorkSource {
public:
    WorkSource() = default;
    WorkSource(const WorkSource&) = delete;
    WorkSource& operator=(const WorkSource&) = delete;
    virtual ~WorkSource() = default;

    // Whether adopt() may find a launch, or stopping() has become true. Cheap, because the runner calls it between
    // polls.
    [[nodiscard]] virtual bool has_work() const = 0;
    // Adds another launch to the runner while the current ones wait. Returns false when there is none.
    virtual bool adopt() = 0;
    // True: every launch must end because the device is being destroyed.
    [[nodiscard]] virtual bool stopping() const = 0;
};

// The current wait of the core ends because its limit is over.
void time_out(CoreContext& core);

// State of a wait in which the core does the polling itself.
struct PollState {
    std::chrono::nanoseconds began;
    std::uint64_t round = 0;
    std::chrono::nanoseconds liveness_checked{0};  // time of the last liveness check; 0: none yet
};

// Reports the wait of a core to a wait policy, and its end when this ends.
class WaitObservation {
public:
    explicit WaitObservation(WaitPolicy& wait_policy) : wait_policy_(wait_policy) {}
    WaitObservation(const WaitObservation&) = delete;
    WaitObservation& operator=(const WaitObservation&) = delete;
    ~WaitObservation() { end(); }

    void report(const LongWait& wait) {
        reported_ = true;
        wait_policy_.observe(this, wait);
    }
    void end() {
        if (std::exchange(reported_, false)) wait_policy_.end_observation(this);
    }
    [[nodiscard]] bool reported() const { return reported_; }

private:
    WaitPolicy& wait_policy_;
    bool reported_ = false;
};

// The cores of launches that have not ended, in the order in which they take turns.
class CoreRing {
public:
    [[nodiscard]] bool empty() const { return first_ == nullptr; }
    [[nodiscard]] std::size_t size() const { return size_; }
    [[nodiscard]] CoreContext* first() const { return first_; }
    void insert(CoreContext& core);
    void remove(CoreContext& core);
    // Returns the next core that can run, and a polling core only if no other core can. Null: none.
    [[nodiscard]] CoreContext* find_ready(CoreContext& after) const;

private:
    CoreContext* first_ = nullptr;
    std::size_t size_ = 0;
};

// Switches one thread between its own context and those of cores. All code between a wait and the switch is inlined:
// after a switch the processor mispredicts every function return, because it goes to another context's caller; this
// would cost more than all the rest. The thread sanitizer needs the inlining as well: see SanitizerFiber.
class ContextSwitch {
public:
    ContextSwitch() : exceptions_(&ExceptionState::current()) { main_.sanitizer.adopt_thread(); }
    ContextSwitch(const ContextSwitch&) = delete;
    ContextSwitch& operator=(const ContextSwitch&) = delete;
    ~ContextSwitch() = default;

    // The thread's own context.
    [[nodiscard]] Context& main() { return main_; }
    // Suspends the running context. Returns when another context switches back to it.
    [[gnu::always_inline]] inline void to(Context& next) {
        Context& self = *running_;
        if (&next == &self) return;
        running_ = &next;
        switched_from_ = &self;
        const ExceptionState mine = *exceptions_;
        self.sanitizer.before_switch(next.sanitizer);
        finish(std::move(next.handle).resume(), self);
        *exceptions_ = mine;
    }
    // The first action of a new context.
    [[gnu::always_inline]] inline void begin(boost::context::fiber&& from, Context& self) {
        finish(std::move(from), self);
        *exceptions_ = {};
    }
    // The last action of a context: returns the handle that it must return.
    [[gnu::always_inline]] inline boost::context::fiber end(Context& next) {
        running_ = &next;
        switched_from_ = nullptr;
        SanitizerFiber::before_last_switch(next.sanitizer);
        return std::move(next.handle);
    }

private:
    [[gnu::always_inline]] inline void finish(boost::context::fiber&& from, Context& self) {
        Context& other = switched_from_ != nullptr ? *switched_from_ : ended_context_;
        self.sanitizer.after_switch(other.sanitizer);
        if (switched_from_ != nullptr) switched_from_->handle = std::move(from);
    }

    Context main_;
    Context ended_context_;  // stands in for contexts that have ended
    Context* running_ = &main_;
    Context* switched_from_ = nullptr;
    ExceptionState* exceptions_;  // of the thread
};

// Ends waits and launches that must end: deadlines, dead peers, destruction of the device. Long waits are checked at
// growing intervals.
class WaitLimits {
public:
    WaitLimits(const CoreRing& ring, WaitPolicy& wait_policy, WorkSource& source, Scheduler* scheduler);

    // Checks all launches and waits. `waited`: minimum time that all current waits have lasted.
    void check(std::chrono::nanoseconds waited = std::chrono::nanoseconds{0});
    void use(Scheduler* scheduler) { scheduler_ = scheduler; }
    // Checks the wait of a core that polls by itself. Throws KernelError. Returns true at the intervals of the checks
    // of long waits.
    bool check_poll(CoreContext& self, const PeGroup& needs, PollState& polling) const;
    // The time until the next check while no core can run.
    [[nodiscard]] std::chrono::nanoseconds interval() const;
    // A core can run again: the next wait begins with short intervals.
    void reset_interval();
    // All cores have waited for `interval`: checks and reports them, and doubles the interval.
    void check_after(std::chrono::nanoseconds interval);

private:
    void report_wait(std::chrono::nanoseconds waited);
    void check_launch(CoreContext& core, std::chrono::nanoseconds now);
    void check_wait(CoreContext& core, std::chrono::nanoseconds now, std::chrono::nanoseconds waited);
    [[nodiscard]] std::chrono::nanoseconds shortest_timeout() const;

    const CoreRing& ring_;
    WaitPolicy& wait_policy_;
    WorkSource& source_;
    Scheduler* scheduler_;
    std::chrono::nanoseconds check_interval_;
    std::chrono::nanoseconds idle_since_{0};  // no core can run since then; meaningful while `observation_` is reported
    WaitObservation observation_;
};

// Runs the cores of launches on one thread, in turns.
// A core runs until it waits. It then resumes the next core in the ring that can run, directly from its own stack. When
// no core can run, the thread takes another launch or waits by the wait policy until a condition becomes true. Thread
// rule: only the thread that created the runner uses it.
class Runner {
public:
    // With a scheduler, nothing outside the ring ends a wait: when no core can continue, the scheduler must resolve it.
    Runner(WaitPolicy& wait_policy, WorkSource& source, Scheduler* scheduler = nullptr);
    Runner(const Runner&) = delete;
    Runner& operator=(const Runner&) = delete;
    ~Runner() = default;

    // Adds the cores of `run` to the ring. `run` must live until on_end(run) was called. A launch with a scheduler of
    // its own must be the only one.
    void add(RunningLaunch& run, CoreSet& cores);
    // Whether a scheduler chooses the cores that run.
    [[nodiscard]] bool scheduled() const { return scheduler_ != nullptr; }
    // Runs until no core is left. Calls `on_end` on the thread's own stack for each launch that has ended.
    void run(const std::function<void(RunningLaunch&)>& on_end);

    // Called by the current core. These functions return when the core may continue, and throw KernelError when its
    // wait has failed.
    std::uint64_t await_word(CoreContext& self, const Condition& condition, std::chrono::nanoseconds timeout,
                             const Where& where);
    void await_core_barrier(CoreContext& self, const Where& where);
    // Like await_word, but returns the failure instead of throwing it.
    Status await_predicate(CoreContext& self, WaitPredicate& predicate, const Where& where);
    void poll(CoreContext& self, std::uint64_t round, const Where& where);
    // Called between two polls of `condition`, the last of which read `seen`. Throws like await_word.
    void poll_condition(CoreContext& self, const Condition& condition, std::uint64_t seen, PollState& polling,
                        WaitObservation& observation, const Where& where);
    [[nodiscard]] WaitPolicy& wait_policy() const { return wait_policy_; }
    // Called in a wait loop that checked mode has recognised: `self.polled` does not change. With a scheduler, returns
    // after the memory changes or when no other core can run. Throws like await_word.
    void poll_unchanged(CoreContext& self, PollState& polling, const Where& where);
    // Lets the scheduler choose again; `self` stays runnable.
    void reschedule(CoreContext& self, const Where& where);
    // Like reschedule, for a core that has run for long. Also ends launches whose deadline has passed.
    void preempt(CoreContext& self, const Where& where);

private:
    boost::context::fiber begin(CoreContext& self, boost::context::fiber&& from);
    void use(Scheduler* scheduler);
    boost::context::fiber end(CoreContext& self);
    // Runs other cores until the current wait of `self` is over. Returns false when the wait failed. Inlined for the
    // reason that ContextSwitch states.
    [[gnu::always_inline]] inline bool yield_until_resumed(CoreContext& self);
    // Calls yield_until_resumed() and throws the failure of the wait, if any.
    [[gnu::always_inline]] inline void yield_or_throw(CoreContext& self);
    // Polls for a short time if there is no other core and no other launch to run.
    [[nodiscard]] bool poll_briefly(CoreContext& self);
    CoreContext& next_after(CoreContext& self);
    CoreContext& scheduled_after(CoreContext& self);
    CoreContext* idle(CoreContext& after);
    void pause(const CoreContext& polling);

    WaitPolicy& wait_policy_;
    WorkSource& source_;
    Scheduler* scheduler_;
    int polls_;  // number of polls before the policy's until()
    std::vector<CoreContext*> runnable_;
    ContextSwitch switch_;
    CoreRing ring_;
    WaitLimits limits_;
    std::size_t polls_in_a_row_ = 0;
    std::uint32_t switches_ = 0;
    std::vector<RunningLaunch*> ended_;
};

// Lets the current core wait for a transport while other cores run. `where`: the source line of the operation.
class CoreWait final : public RemoteWait {
public:
    CoreWait(CoreContext& core, const Where& where) : core_(core), where_(where) { core.used_transport = true; }

    Status until(const std::function<bool()>& ready, const char* what, int pe) override {
        if (ready()) return {};
        WaitPredicate predicate{ready, what, pe};
        return core_.runner->await_predicate(core_, predicate, where_);
    }
    [[nodiscard]] std::unique_ptr<RemoteCoreState>& core_state() override { return core_.remote; }

private:
    CoreContext& core_;
    const Where& where_;
};

}  // namespace npushmem::npu::detail
