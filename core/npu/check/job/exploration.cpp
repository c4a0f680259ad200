// SPDX-License-Identifier: BSD-3-Clause
#include "core/npu/check/job/exploration.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "core/npu/check/explore/dpor.hpp"

namespace npushmem::npu::check {
namespace {

using explore::Deviation;
using explore::FewDeviations;
using explore::Replay;

constexpr std::string_view replay_prefix = "replay:";
// When not all schedules fit into the budget: this part of it is kept for those with few deviations.
constexpr std::uint64_t part_for_few = 4;
constexpr std::size_t max_few = 3;

std::vector<Deviation> deviations_of(const CheckReport& report) {
    return *explore::parse_deviations(std::string_view(report.schedule).substr(replay_prefix.size()));
}

// The first error and the status, without the schedule's details.
std::pair<Hazard, Code> failure_of(const CheckReport& report) {
    const auto error = std::ranges::find_if_not(report.findings, &Finding::hint);
    return {error == report.findings.end() ? Hazard::none : error->hazard, report.status.code()};
}

bool fails_like(const CheckReport& run, const CheckReport& report) {
    return !run.clean() && failure_of(run) == failure_of(report);
}

void report_divergence(CheckReport& report) {
    report.status = {Code::state,
                     "the kernel took other steps when a schedule was run again: it depends on more than the memory "
                     "that it accesses through Core; reset such state with before_each"};
}

std::string few_text(std::size_t deviations) {
    if (deviations == 0) return "the default schedule";
    return fmt::format("all schedules with at most {} {}", deviations, deviations == 1 ? "deviation" : "deviations");
}

}  // namespace

void Exploration::name_cut_loop(const explore::LoopBounds& loops, CheckReport& report) {
    if (!loops.is_cut() || report.coverage.empty()) return;
    report.complete = false;
    report.coverage += fmt::format(", except those in which loops go on alone for more rounds, such as the one at {}",
                                   loops.cut_line());
}

void Exploration::record(const explore::DecidedRun& run, CheckReport& report) {
    report.steps = run.steps();
    report.deviations = run.deviations().size();
    report.schedule = std::string(replay_prefix) + explore::text_of(run.deviations());
}

void Exploration::adopt(CheckReport run, CheckReport& report) {
    if (on_adopt_) on_adopt_();
    if (!run.clean()) {
        report.schedule = std::move(run.schedule);
        report.deviations = run.deviations;
    }
    report.findings = std::move(run.findings);
    report.status = std::move(run.status);
    report.remote_signals = run.remote_signals;
    report.remote_waits = run.remote_waits;
}

bool Exploration::count_run(explore::Decisions& decisions, CheckReport& report) {
    CheckReport one = run_job_(decisions);
    ++report.schedules;
    report.steps += one.steps;
    const bool failed = !one.clean();
    adopt(std::move(one), report);
    return failed;
}

Exploration::Outcome Exploration::run_all(std::uint64_t budget, CheckReport& report) {
    explore::Dpor dpor;
    while (dpor.next_run()) {
        if (report.schedules == budget) return Outcome::budget;
        const bool failed = count_run(dpor, report);
        report.redundant = dpor.redundant_runs();
        if (failed) return Outcome::found;
    }
    if (!dpor.diverged()) return Outcome::all;
    report_divergence(report);
    return Outcome::budget;
}

Exploration::Outcome Exploration::run_few(std::size_t max_deviations, std::uint64_t budget, CheckReport& report) {
    FewDeviations few(max_deviations);
    while (few.next_run()) {
        if (report.schedules == budget) return Outcome::budget;
        if (count_run(few, report)) return Outcome::found;
    }
    if (!few.diverged()) return Outcome::all;
    report_divergence(report);
    return Outcome::budget;
}

// Not all schedules fit into the budget.
void Exploration::run_within_budget(CheckReport& report) {
    report.complete = false;
    std::optional<std::size_t> covered;
    for (std::size_t max = 0; max <= max_few; ++max) {
        const Outcome outcome = run_few(max, schedule_.max_schedules, report);
        if (outcome == Outcome::found) return minimise(report);
        if (outcome == Outcome::budget) break;
        covered = max;
    }
    report.coverage = covered ? few_text(*covered) + " and others" : "a part of the schedules";
}

void Exploration::explore(CheckReport& report) {
    Outcome outcome = Outcome::all;
    const std::uint64_t budget = schedule_.max_schedules;
    if (schedule_.deviations >= 0) {
        const auto max = static_cast<std::size_t>(schedule_.deviations);
        outcome = run_few(max, budget, report);
        report.coverage = outcome == Outcome::all ? few_text(max) : "a part of " + few_text(max);
        report.complete = outcome != Outcome::budget;
    } else {
        outcome = run_all(budget - budget / part_for_few, report);
        report.coverage = "all schedules";
        if (outcome == Outcome::budget && report.status.ok()) run_within_budget(report);
    }
    if (outcome == Outcome::found) minimise(report);
    if (!report.clean()) report.coverage.clear();
}

void Exploration::replay(CheckReport& report) {
    Replay replay(*explore::parse_deviations(schedule_.trace));
    count_run(replay, report);
}

void Exploration::draw(CheckReport& report) {
    explore::RandomChoice random(schedule_.seed);
    count_run(random, report);
}

// With up to this number of deviations no smaller one fails: the search is exhaustive.
bool Exploration::find_fewer(CheckReport& report) {
    for (std::size_t max = 0; max < report.deviations && max <= max_few; ++max) {
        FewDeviations few(max);
        while (few.next_run()) {
            if (report.minimised_by == minimising_runs_) return false;
            ++report.minimised_by;
            CheckReport one = run_job_(few);
            if (!fails_like(one, report)) continue;
            adopt(std::move(one), report);
            return true;
        }
    }
    return false;
}

void Exploration::leave_out(CheckReport& report) {
    for (std::size_t i = 0; i < report.deviations && report.minimised_by < minimising_runs_;) {
        std::vector<Deviation> fewer = deviations_of(report);
        fewer.erase(fewer.begin() + static_cast<std::ptrdiff_t>(i));
        Replay replay(std::move(fewer));
        ++report.minimised_by;
        CheckReport one = run_job_(replay);
        const bool better = fails_like(one, report) && one.deviations < report.deviations;
        if (better) adopt(std::move(one), report);
        i = better ? 0 : i + 1;
    }
}

void Exploration::minimise(CheckReport& report) {
    // What depends on more than the schedule may not repeat.
    if (report.status.code() == Code::state) return;
    if (report.deviations == 0 || find_fewer(report)) return;
    leave_out(report);
    // Its memory is to remain.
    Replay replay(deviations_of(report));
    ++report.minimised_by;
    CheckReport again = run_job_(replay);
    report.repeated = fails_like(again, report);
    if (report.repeated) adopt(std::move(again), report);
}

}  // namespace npushmem::npu::check
