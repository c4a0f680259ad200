// SPDX-License-Identifier: BSD-3-Clause
// Runs every schedule of a program up to the order of steps that commute: dynamic partial-order reduction with source
// sets and sleep sets (Abdulla, Aronis, Jonsson and Sagonas, "Optimal dynamic partial order reduction", 2014).
//
// The program is run again from its beginning for each schedule:
//
//   Dpor dpor;
//   while (dpor.next_run()) { run the program, with choose() and executed() for each step; dpor.end_run(waiting); }
//
// Waits. A step with a guard runs only while the guard holds. Whether it could have run before an earlier write of the
// word is decided by the value that the word had before the write; if it could not, the next earlier write is examined.
// A wait that has not ended is examined when the run ends or becomes redundant. This needs no unsuccessful reads of the
// word in the schedules.
//
// Other waits. A thread that repeats reads without effect must not be enabled until a step writes what it has read.
#pragma once

#include <memory>
#include <vector>

#include "core/npu/check/explore/step.hpp"

namespace npushmem::npu::check::explore {

class Dpor final : public Decisions {
public:
    // Begins the next run. Returns false when every schedule was run.
    bool next_run();
    ThreadId choose(const std::vector<ThreadId>& enabled, ThreadId last) override;
    void executed(Step step) override;
    void end_run(const std::vector<Waiting>& waiting) override;

    [[nodiscard]] bool redundant() const override { return redundant_; }
    // The number of runs that became redundant.
    [[nodiscard]] std::uint64_t redundant_runs() const { return redundant_runs_; }
    // Whether a thread was not enabled where it was before, or made other accesses: the program depends on more than
    // the schedule.
    [[nodiscard]] bool diverged() const { return diverged_; }

private:
    using Clock = std::vector<std::uint32_t>;  // by thread: number of its last step that comes before
    using StepRef = std::shared_ptr<const Step>;

    // A thread whose next step was explored from here, or from a place before with only independent steps since.
    struct Asleep {
        ThreadId thread;
        StepRef step;
    };
    // A place in the schedule, and the step that was taken there.
    struct Node {
        std::vector<ThreadId> enabled;
        std::vector<ThreadId> backtrack;  // threads to try
        std::vector<Asleep> sleep;        // including those that were tried
        ThreadId chosen = -1;
        StepRef step;
        std::uint32_t number = 0;
        Clock clock;
    };

    [[nodiscard]] std::vector<Asleep> sleep_after(const Node& node) const;
    [[nodiscard]] Clock& clock_of(ThreadId thread);
    [[nodiscard]] bool untried(const Node& node, ThreadId thread) const;
    void begin_step(Node& node, Step step);
    // Finds the steps before the `end`-th that conflict with its step, and joins `clock` with theirs.
    void find_races(std::size_t end, ThreadId thread, const Step& step, Clock& clock);
    // The same for a guard alone; `clock`: what comes before the wait.
    void find_guard_races(std::size_t end, ThreadId thread, const Guard& guard, const Clock& clock);
    // Makes sure that schedules in which the step of `thread` comes before the `at`-th step are run. The steps between
    // `at` and `end` have run before the step of `thread`, which is ordered behind `clock`.
    void reverse(std::size_t at, std::size_t end, ThreadId thread, const Clock& clock);
    // The threads whose first steps in that sequence of steps do not come after other steps of it.
    [[nodiscard]] std::vector<ThreadId> initials(std::size_t at, std::size_t end, ThreadId thread,
                                                 const Clock& clock) const;

    std::vector<Node> path_;
    std::size_t depth_ = 0;  // steps of the current run
    bool begun_ = false;
    bool redundant_ = false;
    bool diverged_ = false;
    std::uint64_t redundant_runs_ = 0;
    std::vector<Clock> clocks_;                    // by thread: of its last step
    std::vector<std::vector<std::size_t>> steps_;  // by thread: the places of its steps
};

}  // namespace npushmem::npu::check::explore
