// SPDX-License-Identifier: BSD-3-Clause
// One schedule of a checked job in which every step is decided: each visible action of a core, each command of a pipe,
// and the arrival of each signal at another PE. The decisions are made elsewhere; see explore/step.hpp.
#pragma once

#include <string>
#include <unordered_map>
#include <vector>

#include "core/npu/check/explore/few_deviations.hpp"
#include "core/npu/check/job/job_control.hpp"

namespace npushmem::npu::check {

// The memory that one core has read, for wait loops: a core that repeats reads without effect runs again when a step
// writes there.
class LoopReads {
public:
    void add(const explore::MemoryAccess& read);
    [[nodiscard]] bool touched_by(const explore::Step& step) const;
    // A hash of the bytes there, which must be addresses of this process.
    [[nodiscard]] std::uint64_t contents() const;
    void clear();

private:
    static constexpr std::size_t max_reads = 512;

    std::vector<explore::MemoryAccess> reads_;
    bool everything_ = false;  // more than `max_reads`
};

class SteppedControl : public JobControl {
public:
    // `loops` lives as long as the exploration.
    SteppedControl(explore::Decisions& decisions, explore::LoopBounds& loops, std::uint64_t max_steps);

    bool run_command() override { return false; }
    bool deliver_signal() override { return false; }
    bool switch_core() override { return true; }

    detail::CoreContext* choose(const std::vector<detail::CoreContext*>& able) override;
    detail::CoreContext* unblock() override;
    [[nodiscard]] std::uint64_t version(const detail::CoreContext& core) const override;

    // After the last core has ended.
    void end_run();
    [[nodiscard]] const explore::DecidedRun& decided_run() const { return run_; }

    // Of every wait loop that no step of any thread can end any more: the number of polls that it may still make.
    void set_idle_polls(std::uint64_t polls) { idle_polls_ = polls; }

protected:
    using ThreadId = explore::ThreadId;

    // Chooses the thread that runs next; -1: none, and the runner shall ask again. `enabled` is empty only if
    // other_processes().
    [[nodiscard]] virtual ThreadId decide(const std::vector<ThreadId>& enabled);
    // Whether kernels of other processes take steps, too: then they may unblock the cores of this one.
    [[nodiscard]] virtual bool other_processes() const { return false; }
    // Replaces the addresses by places that mean the same in all processes and runs.
    virtual void translate(explore::Step& /*step*/) const {}
    // Lets every wait loop go on, once, until it ends by itself or has made so many polls.
    [[nodiscard]] bool begin_poll_round() override;
    void begin_step(ThreadId thread);
    // The thread that is to continue.
    [[nodiscard]] ThreadId preferred() const;
    // Cores that poll what the step has written poll again. Returns whether there are any.
    bool wake_polling(const explore::Step& step);
    // With other processes. Like begin_poll_round; cores then wait for what a host may write.
    void poll_alone();
    // Cores that poll poll again if the memory has changed since poll_alone().
    void wake_for_hosts();
    [[nodiscard]] std::vector<explore::Waiting> waiting() const;
    // Whether the launch is failing: nothing is decided any more.
    [[nodiscard]] bool failing() const;

private:
    // A thread of the exploration: a core, a pipe of a core, a signal in flight, or the expiry of a core's wait: its
    // loop goes on without a change, or its limit is over. An expiry is enabled while the core waits.
    struct Thread {
        detail::CoreContext* context = nullptr;  // of a core
        std::uint32_t core = 0;                  // its place in cores_
        Pipe pipe = Pipe::scalar;                // scalar: no pipe
        bool expiry = false;
        std::uint32_t steps = 0;
    };
    struct CoreEntry {
        std::array<ThreadId, pipes_per_core> pipes{-1, -1, -1, -1};
        ThreadId expiry = -1;
        explore::StepId expired = {};  // since the core's last step
        LoopReads reads;
        LoopReads untranslated;          // the same as addresses of this process, with other processes
        std::uint64_t contents = 0;      // of these at the last poll_alone()
        std::uint64_t idle_version = 0;  // of the memory when the core polled last because no core could run
        std::uint64_t wakes = 0;         // the number of times that a step wrote what the core polls
    };

    void register_cores(const std::vector<detail::CoreContext*>& all);
    ThreadId add_thread(const Thread& thread);
    void add_expiries(const std::vector<detail::CoreContext*>& able, std::vector<ThreadId>& enabled);
    // The core whose wait ends goes on.
    detail::CoreContext* expire(std::uint32_t core);
    // Runs the step of a thread other than a core. Returns the core that continues within the step; null: none.
    detail::CoreContext* run_other(ThreadId thread);
    // Cores of `able`, pipes with a command that can run, and signals.
    [[nodiscard]] std::vector<ThreadId> find_enabled(const std::vector<detail::CoreContext*>& able);
    // Records the step that has run. Returns whether it lets cores run that have waited.
    bool end_step();
    // Whether the running thread is the core or its expiry: the core then waits behind the step.
    [[nodiscard]] bool is_step_of(std::size_t core) const;
    void run_agent(ThreadId thread);
    // Null: the core is not checked, or does not exist any more.
    [[nodiscard]] CommandQueues* queues_of(std::uint32_t core) {
        const CoreTable& cores = domain().cores;
        return cores.contains(cores.first() + core) ? cores.queues_of(cores.first() + core) : nullptr;
    }

    explore::DecidedRun run_;
    std::uint64_t max_steps_;
    std::uint64_t idle_polls_ = explore::LoopBounds::max_polls;
    std::vector<Thread> threads_;
    std::vector<CoreEntry> cores_;
    std::unordered_map<const detail::CoreContext*, ThreadId> thread_of_;
    ThreadId running_ = -1;  // -1: the step was recorded
    ThreadId last_ = -1;
    int turn_ = 0;  // the number of steps that it has taken in a row
};

}  // namespace npushmem::npu::check
