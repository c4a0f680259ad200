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
// Other waits. A thread that repeats reads without effect must not be enabled until a step writes what it has read. If
// the thread may go on without that, because its loop gives up or its wait times out, this alternative is the step of
// another thread, which is enabled while the first one waits. The alternative and the write disable each other.
//
// A step that disables a thread conflicts with the step that the thread would have taken.
#pragma once

#include <memory>
#include <unordered_map>
#include <vector>

#include "core/npu/check/explore/step.hpp"

namespace npushmem::npu::check::explore {

// The places in a schedule whose steps may conflict with a step, so that not every step is compared with every other
// one.
class PlacesByMemory {
public:
    // The step at this place. Places that are not smaller, of an earlier run, are forgotten sooner or later.
    void add(std::size_t place, const Step& step);
    // Every place before `end` whose step has an access or a guard in the same lines of memory, from the last to the
    // first; perhaps some others.
    [[nodiscard]] std::vector<std::size_t> find(std::size_t end, const Step& step) const;

private:
    static constexpr std::uint64_t line = 64;
    static constexpr std::uint64_t max_lines = 64;  // of an access; longer ones are compared with every step
    using Places = std::vector<std::size_t>;        // ascending

    // Calls visit(number of the line) for the lines of the step. Returns false if an access is too long.
    template <class Visit>
    static bool for_each_line(const Step& step, const Visit& visit);

    std::unordered_map<std::uint64_t, Places> by_line_;
    Places long_ones_;
};

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
    // Whether other threads were enabled than before in the same place, or made other accesses: the program depends on
    // more than the schedule.
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
    // The last step may have disabled threads: makes sure that schedules in which they come before it are run.
    void find_disabled(const std::vector<ThreadId>& enabled);
    // Makes sure that schedules in which the step of `thread` comes before the `at`-th step are run. The steps between
    // `at` and `end` have run before the step of `thread`, which is ordered behind `clock`.
    void reverse(std::size_t at, std::size_t end, ThreadId thread, const Clock& clock);
    // The threads whose first steps in that sequence of steps do not come after other steps of it.
    [[nodiscard]] std::vector<ThreadId> initials(std::size_t at, std::size_t end, ThreadId thread,
                                                 const Clock& clock) const;

    std::vector<Node> path_;
    PlacesByMemory places_;
    std::size_t depth_ = 0;  // steps of the current run
    bool begun_ = false;
    bool redundant_ = false;
    bool diverged_ = false;
    std::uint64_t redundant_runs_ = 0;
    std::vector<Clock> clocks_;                    // by thread: of its last step
    std::vector<std::vector<std::size_t>> steps_;  // by thread: the places of its steps
};

}  // namespace npushmem::npu::check::explore
