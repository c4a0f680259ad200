#pragma once

#include <chrono>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <vector>

#include "core/npu/core_context.hpp"
#include "core/npu/running_launch.hpp"
#include "npushmem/npu/remote_operations.hpp"
#include "npushmem/npu/wait_policy.hpp"

namespace npushmem::npu::detail {

// Who goes next, where that is not simply the next in the ring: for modes that replay, vary or explore the order.
// Called by the thread of one runner.
class Scheduler {
public:
    Scheduler() = default;
    Scheduler(const Scheduler&) = delete;
    Scheduler& operator=(const Scheduler&) = delete;
    virtual ~Scheduler() = default;

    // One of `runnable`, which is not empty and in ring order behind the core that ran last.
    virtual CoreContext& choose(const std::vector<CoreContext*>& runnable) = 0;
    // No core can go on. Makes something happen that may change that, or fails the launches.
    virtual void unblock() = 0;
    // The deadline of a launch has passed. True: the scheduler has failed the launches. False: the runner fails this
    // one.
    virtual bool on_deadline() { return false; }
    // Changes with the memory: a core that polls need not look again before.
    [[nodiscard]] virtual std::uint64_t version() const = 0;
};

// Runs the cores of launches on one thread, in turns.
//
// A core runs until it waits; then the next one in the ring that can run is resumed directly from its stack. When none
// can, the thread takes on another launch, or waits as the policy says until a condition comes true.
// What a runner asks of those who queue launches.
class WorkSource {
public:
    WorkSource() = default;
    WorkSource(const WorkSource&) = delete;
    WorkSource& operator=(const WorkSource&) = delete;
    virtual ~WorkSource() = default;

    // Cheap: called between polls. Whether adopt() might find something, or stopping() became true.
    [[nodiscard]] virtual bool has_work() const = 0;
    // Adds another launch, to run beside those that wait. False when there is none.
    virtual bool adopt() = 0;
    // Every launch shall end: the device goes away.
    [[nodiscard]] virtual bool stopping() const = 0;
};

// A wait whose polls a core makes by means of its own.
struct PollState {
    std::chrono::nanoseconds began;
    std::uint64_t round = 0;
    std::chrono::nanoseconds liveness_checked{0};  // time of the last liveness check; 0: never
};

// Used by the thread that made it, only.
class Runner {
public:
    // With a scheduler, nothing from outside the ring ends a wait: when nobody can go on, the scheduler must see to it.
    Runner(WaitPolicy& wait_policy, WorkSource& source, Scheduler* scheduler = nullptr);
    Runner(const Runner&) = delete;
    Runner& operator=(const Runner&) = delete;
    ~Runner() = default;

    // Its cores join the ring. `run` must live until on_end(run) was called.
    void add(RunningLaunch& run, CoreSet& cores);
    // Until no core is left; calls `on_end` on the thread's own stack for each launch that has ended.
    void run(const std::function<void(RunningLaunch&)>& on_end);

    // For the current core. They return when it may go on, and throw KernelError when it shall not.
    std::uint64_t await_word(CoreContext& self, const Condition& condition, std::chrono::nanoseconds timeout,
                             const Where& where);
    void await_core_barrier(CoreContext& self, const Where& where);
    // As await_word, but returns why it shall not go on.
    Status await_predicate(CoreContext& self, WaitPredicate& predicate, const Where& where);
    void poll(CoreContext& self, std::uint64_t round, const Where& where);
    // Between two polls of `condition`, the last of which found `seen`. Throws as await_word does.
    void poll_condition(CoreContext& self, const Condition& condition, std::uint64_t seen, PollState& polling,
                        const Where& where);
    // In a wait loop that checked mode recognised: `self.polled` does not change. With a scheduler, until the memory
    // changes or no other core can run. Throws as await_word does.
    void poll_unchanged(CoreContext& self, PollState& polling, const Where& where);
    // Lets the scheduler choose again; `self` could go on.
    void reschedule(CoreContext& self, const Where& where);
    // The same for a core that has run for long; launches beyond their deadline end.
    void preempt(CoreContext& self, const Where& where);

private:
    boost::context::fiber begin(CoreContext& self, boost::context::fiber&& from);
    boost::context::fiber end(CoreContext& self);
    void insert(CoreContext& core);
    void remove(CoreContext& core);
    // What lies between a wait and the switch is inlined: after a switch, each return from a function goes to another
    // context's caller than the processor predicts, and costs more than all the rest.
    [[gnu::always_inline]] inline void switch_to(Context& to);
    // Inlined for the thread sanitizer's sake as well: see SanitizerFiber.
    [[gnu::always_inline]] inline void finish_switch(boost::context::fiber&& from, Context& self);
    // Gives way until the current wait of `self` is over. False: not by its condition, see wait_failure().
    [[gnu::always_inline]] inline bool yield_until_resumed(CoreContext& self);
    static Status wait_failure(CoreContext& self);
    // yield_until_resumed(), and throws why the wait is over.
    [[gnu::always_inline]] inline void yield_or_throw(CoreContext& self);
    // Polls a little where no other core could run meanwhile, and nobody else is to be looked after.
    [[nodiscard]] bool poll_briefly(CoreContext& self);
    CoreContext& next_after(CoreContext& self);
    CoreContext& scheduled_after(CoreContext& self);
    [[nodiscard]] bool can_run(CoreContext& core) const;
    void count_poll(CoreContext& self) const;
    void check_poll(CoreContext& self, int pe, PollState& polling) const;
    CoreContext* find_ready(CoreContext& after);
    CoreContext* idle(CoreContext& after);
    void pause(const CoreContext& polling);
    // Deadlines, dead peers, stopping: what ends waits.
    // `waited`: for how long at least all current waits have lasted.
    void check_limits(std::chrono::nanoseconds waited);
    void check_launch(CoreContext& core, std::chrono::nanoseconds now);
    void check_wait(CoreContext& core, std::chrono::nanoseconds now, std::chrono::nanoseconds waited);
    [[nodiscard]] std::chrono::nanoseconds shortest_timeout();

    WaitPolicy& wait_policy_;
    WorkSource& source_;
    Scheduler* scheduler_;
    int polls_;  // before until() of the policy
    std::vector<CoreContext*> runnable_;
    Context main_;
    Context ended_context_;  // stands for contexts that are no more
    Context* running_ = &main_;
    Context* switched_from_ = nullptr;
    ExceptionState* exceptions_;  // of this thread
    CoreContext* ring_ = nullptr;
    std::size_t ring_size_ = 0;
    std::size_t polls_in_a_row_ = 0;
    std::uint32_t switches_ = 0;
    std::chrono::nanoseconds check_interval_;
    std::vector<RunningLaunch*> ended_;
};

// A core in an operation of a transport: other cores run meanwhile.
// For the current core of a runner; `where` is what the kernel is doing.
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
