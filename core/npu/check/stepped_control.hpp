// SPDX-License-Identifier: BSD-3-Clause
// One schedule of a checked job in which every step is decided: each visible action of a core, each command of a pipe,
// and the arrival of each signal at another PE. The decisions are made elsewhere; see explore/step.hpp.
#pragma once

#include <string>
#include <unordered_map>
#include <vector>

#include "core/npu/check/explore/few_deviations.hpp"
#include "core/npu/check/job_control.hpp"

namespace npushmem::npu::check {

// The memory that one core has read, for wait loops: a core that repeats reads without effect runs again when a step
// writes there.
class LoopReads {
public:
    void add(const explore::MemoryAccess& read);
    [[nodiscard]] bool touched_by(const explore::Step& step) const;
    void clear();

private:
    static constexpr std::size_t max_reads = 512;

    std::vector<explore::MemoryAccess> reads_;
    bool everything_ = false;  // more than `max_reads`
};

class SteppedControl : public JobControl {
public:
    SteppedControl(explore::Decisions& decisions, std::uint64_t max_steps);

    bool run_command() override { return false; }
    bool deliver_signal() override { return false; }
    bool switch_core() override { return true; }

    detail::CoreContext* choose(const std::vector<detail::CoreContext*>& able) override;
    void unblock() override;
    [[nodiscard]] std::uint64_t version(const detail::CoreContext& core) const override;

    // After the last core has ended.
    void end_run();
    [[nodiscard]] std::uint64_t steps_taken() const { return steps_taken_; }
    // From the default order, so far.
    [[nodiscard]] const std::vector<explore::Deviation>& deviations() const { return deviations_; }

protected:
    using ThreadId = explore::ThreadId;

    // Chooses the thread that runs next; -1: none, and the runner shall ask again. `enabled` is empty only if
    // other_processes().
    [[nodiscard]] virtual ThreadId decide(const std::vector<ThreadId>& enabled);
    // Whether kernels of other processes take steps, too: then they may unblock the cores of this one.
    [[nodiscard]] virtual bool other_processes() const { return false; }
    // Replaces the addresses by places that mean the same in all processes and runs.
    virtual void translate(explore::Step& /*step*/) const {}
    void begin_step(ThreadId thread);
    // The thread that is to continue.
    [[nodiscard]] ThreadId preferred() const;
    // Cores that poll what the step has written poll again.
    void wake_polling(const explore::Step& step);
    [[nodiscard]] std::vector<explore::Waiting> waiting() const;
    // Whether the launch is failing: nothing is decided any more.
    [[nodiscard]] bool failing() const;

private:
    // A thread of the exploration: a core, a pipe of a core, or a signal in flight.
    struct Thread {
        detail::CoreContext* context = nullptr;  // of a core
        std::uint32_t core = 0;                  // its place in cores_
        Pipe pipe = Pipe::scalar;                // scalar: a core or a signal
        std::uint32_t steps = 0;
    };
    struct CoreEntry {
        std::array<ThreadId, pipes_per_core> pipes{-1, -1, -1, -1};
        LoopReads reads;
        std::uint64_t wakes = 0;  // the number of times that a step wrote what the core polls
    };

    void register_cores(const std::vector<detail::CoreContext*>& all);
    ThreadId add_thread(const Thread& thread);
    // Cores of `able`, pipes with a command that can run, and signals.
    [[nodiscard]] std::vector<ThreadId> find_enabled(const std::vector<detail::CoreContext*>& able);
    // Records the step that has run.
    void end_step();
    void record_accesses(const explore::Step& step);
    void run_agent(ThreadId thread);
    [[nodiscard]] CommandQueues* queues_of(std::uint32_t core) {
        return domain().cores.queues_of(domain().cores.first() + core);
    }

    explore::Decisions& decisions_;
    std::uint64_t max_steps_;
    std::uint64_t steps_taken_ = 0;
    std::vector<Thread> threads_;
    std::vector<CoreEntry> cores_;
    std::unordered_map<const detail::CoreContext*, ThreadId> thread_of_;
    ThreadId running_ = -1;  // -1: the step was recorded
    ThreadId last_ = -1;
    int turn_ = 0;         // the number of steps that it has taken in a row
    bool decided_ = true;  // false: the run has become redundant or has failed
    std::vector<explore::Deviation> deviations_;
};

}  // namespace npushmem::npu::check
