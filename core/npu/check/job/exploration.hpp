// SPDX-License-Identifier: BSD-3-Clause
// Runs a checked job under many schedules until one has a finding, and reports what was covered.
#pragma once

#include <cstddef>
#include <functional>
#include <utility>

#include "core/npu/check/explore/few_deviations.hpp"
#include "core/npu/check/explore/loop_bounds.hpp"
#include "npushmem/npu/checked_job.hpp"

namespace npushmem::npu::check {

class Exploration {
public:
    // Runs the job once, from the same memory each time. Returns its findings, status, traffic and steps, and the
    // deviations as the schedule.
    using RunJob = std::function<CheckReport(explore::Decisions& decisions)>;

    // Runs that look for a schedule with the same failure and fewer deviations.
    static constexpr std::uint64_t max_minimising_runs = 1000;

    // `on_adopt`: called when the last run becomes the one that is reported; empty: nobody wants to know.
    Exploration(const Schedule& schedule, RunJob run_job, std::uint64_t minimising_runs = max_minimising_runs,
                std::function<void()> on_adopt = {})
        : schedule_(schedule),
          run_job_(std::move(run_job)),
          minimising_runs_(minimising_runs),
          on_adopt_(std::move(on_adopt)) {}

    void explore(CheckReport& report);
    // Runs the schedule's trace.
    void replay(CheckReport& report);
    // Runs one schedule, drawn by the schedule's seed.
    void draw(CheckReport& report);

    // The coverage is less when a loop was not explored to its end.
    static void name_cut_loop(const explore::LoopBounds& loops, CheckReport& report);
    // Fills in the steps, the deviations and the schedule of a run.
    static void record(const explore::DecidedRun& run, CheckReport& report);

private:
    enum class Outcome { all, budget, found };

    // Runs once and counts the run. Returns true when it has a finding: then it becomes the report.
    bool count_run(explore::Decisions& decisions, CheckReport& report);
    Outcome run_all(std::uint64_t budget, CheckReport& report);
    Outcome run_few(std::size_t max_deviations, std::uint64_t budget, CheckReport& report);
    void run_within_budget(CheckReport& report);
    // Replaces a failing schedule by one with the same failure and fewer deviations, and runs it last.
    void minimise(CheckReport& report);
    bool find_fewer(CheckReport& report);
    void leave_out(CheckReport& report);
    // Takes the findings and the schedule of the run that was the last.
    void adopt(CheckReport run, CheckReport& report);

    const Schedule& schedule_;
    RunJob run_job_;
    std::uint64_t minimising_runs_;
    std::function<void()> on_adopt_;
};

}  // namespace npushmem::npu::check
