// SPDX-License-Identifier: BSD-3-Clause
// Grants the steps of all kernels of a job, one at a time, for one run of the job; see step_turns.hpp.
#pragma once

#include <atomic>
#include <chrono>
#include <map>
#include <string>
#include <tuple>
#include <vector>

#include "core/base/parking.hpp"
#include "core/npu/check/explore/few_deviations.hpp"
#include "core/npu/check/processes/step_turns.hpp"

namespace npushmem::npu::check {

// Thread rule: one thread uses it.
class StepScheduler {
public:
    StepScheduler(StepTurns& turns, int pes, explore::Decisions& decisions, WaitOs& os)
        : turns_(turns), run_(decisions), os_(os), pes_(static_cast<std::size_t>(pes)) {}
    StepScheduler(const StepScheduler&) = delete;
    StepScheduler& operator=(const StepScheduler&) = delete;

    // Until `job_ended` is set, which must be followed by turns.notify_scheduler().
    void run(const std::atomic<bool>& job_ended);

    [[nodiscard]] const explore::DecidedRun& decided_run() const { return run_; }
    // Whether the run was ended because it only repeated others, at length: how it ended means nothing.
    [[nodiscard]] bool abandoned() const { return abandoned_; }
    // Empty: the steps depend on nothing but the schedule, and all of each is known. Otherwise the reason why not.
    [[nodiscard]] const std::string& obstacle() const { return obstacle_; }

private:
    using ThreadId = explore::ThreadId;
    using Answer = StepTurns::Answer;

    enum class State { absent, asking, busy };
    // Why the kernels continue without a PE that has none.
    enum class Absence { none, blocked, late };
    struct Pe {
        State state = State::absent;
        Absence absence = Absence::none;
        std::vector<explore::StepId> last_steps;    // of the threads of its launches that have ended
        std::uint64_t entered = 0;                  // host barriers when the last of them ended
        std::vector<explore::StepId> begins_after;  // the steps that every core of the launch comes after
    };
    // A thread of the exploration, in the PE's own numbers.
    using LocalThread = std::tuple<std::size_t, std::uint32_t, ThreadId>;  // PE, launch, number in the launch

    [[nodiscard]] ThreadId number_of(std::size_t pe, ThreadId local);
    void take_requests();
    void take_step(std::size_t pe);
    // A launch of the PE begins: behind the PE's earlier ones, and behind those of others that host barriers order.
    void begin_launch(std::size_t pe);
    void end_launch(std::size_t pe);
    // Answers a PE that asks.
    void answer(std::size_t pe, Answer answer, ThreadId thread = -1);
    // Every PE that asks, except one.
    void answer_all(Answer answer, int except = -1);
    // Returns false when nothing can be decided before the next event.
    bool advance();
    [[nodiscard]] bool any(State state) const;
    // Whether every host either waits for a PE that asks, or the kernels continue without it.
    [[nodiscard]] bool hosts_settled();
    // No kernel can continue without this PE.
    void answer_late_host(std::size_t late);
    // Whether the host of the PE does nothing before a kernel has ended or another host has entered a barrier.
    [[nodiscard]] bool is_blocked(std::size_t pe) const;
    // Nothing is enabled.
    bool resolve_idle();
    void grant(const std::vector<ThreadId>& enabled);
    [[nodiscard]] std::vector<explore::Waiting> waiting();

    StepTurns& turns_;
    explore::DecidedRun run_;
    WaitOs& os_;
    std::vector<Pe> pes_;
    std::map<LocalThread, ThreadId> numbers_;
    std::vector<LocalThread> threads_;  // by number
    std::vector<std::uint32_t> taken_;  // by number of the thread: its steps
    ThreadId last_ = -1;                // the thread whose step ran last
    ThreadId preferred_ = -1;           // that continues in the default order
    int changed_by_ = -1;               // the PE whose step the others have not looked at
    bool idle_answered_ = false;
    bool looked_again_ = false;              // since every host is blocked
    std::chrono::nanoseconds next_look_{0};  // for what hosts may have done
    std::chrono::nanoseconds last_event_{os_.now()};
    bool abandoned_ = false;
    std::string obstacle_;
};

}  // namespace npushmem::npu::check
