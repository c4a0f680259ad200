// SPDX-License-Identifier: BSD-3-Clause
// Runs a checked job under many schedules until one has a finding, and reports what was covered.
#pragma once

#include <cstddef>
#include <functional>
#include <string>

#include "core/npu/check/stepped_control.hpp"
#include "npushmem/npu/checked_job.hpp"

namespace npushmem::npu::check {

class Exploration {
public:
    // Runs the job once, from the same memory each time, and fills in the findings, the status and the traffic.
    using RunJob = std::function<void(JobControl& control, CheckReport& report)>;

    Exploration(const Schedule& schedule, RunJob run_job) : schedule_(schedule), run_job_(std::move(run_job)) {}

    void explore(CheckReport& report);
    // Runs the schedule's trace.
    void replay(CheckReport& report);

private:
    enum class Outcome { all, budget, found };

    // Runs once. Returns the findings, with the deviations as the schedule.
    CheckReport run(explore::Decisions& decisions);
    // Runs once and counts the run. Returns true when it has a finding: then it becomes the report.
    bool count_run(explore::Decisions& decisions, CheckReport& report);
    Outcome run_all(std::uint64_t budget, CheckReport& report);
    Outcome run_few(std::size_t max_deviations, std::uint64_t budget, CheckReport& report);
    void run_within_budget(CheckReport& report);
    // Replaces a failing schedule by one with the same failure and fewer deviations, and runs it last.
    void minimise(CheckReport& report);
    bool find_fewer(CheckReport& report);
    void leave_out(CheckReport& report);
    // Takes the failing run's findings and schedule.
    static void adopt(CheckReport run, CheckReport& report);

    const Schedule& schedule_;
    RunJob run_job_;
};

}  // namespace npushmem::npu::check
