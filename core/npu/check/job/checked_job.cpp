// SPDX-License-Identifier: BSD-3-Clause
#include "npushmem/npu/checked_job.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <charconv>
#include <chrono>
#include <utility>

#include "core/npu/check/job/exploration.hpp"
#include "core/npu/check/job/job_run.hpp"
#include "core/npu/check/job/stepped_control.hpp"
#include "core/npu/source_line.hpp"

namespace npushmem::npu {
namespace {

using check::JobControl;
using check::JobHeap;
using check::JobLaunch;
using check::JobRun;

bool parse_number(std::string_view text, std::uint64_t& value) {
    const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), value);
    return error == std::errc{} && end == text.data() + text.size() && !text.empty();
}

constexpr std::uint64_t max_deviations = 8;
constexpr std::uint64_t min_idle_polls = 16384;

}  // namespace

Result<Schedule> Schedule::parse(std::string_view text) {
    const std::size_t colon = text.find(':');
    const std::string_view name = text.substr(0, colon);
    const bool has_number = colon != std::string_view::npos;
    std::uint64_t number = 0;
    const bool number_ok = has_number && parse_number(text.substr(colon + 1), number);
    if (text == "eager") return Schedule{.kind = Kind::eager};
    if (text == "lazy") return Schedule{.kind = Kind::lazy};
    if (name == "random" && number_ok) return Schedule{.kind = Kind::random, .seed = number};
    if (text == "explore") return Schedule{.kind = Kind::explore};
    if (name == "explore" && number_ok && number <= max_deviations) {
        return Schedule{.kind = Kind::explore, .deviations = static_cast<int>(number)};
    }
    const std::string_view trace = has_number ? text.substr(colon + 1) : std::string_view{};
    if (name == "replay" && has_number && check::explore::parse_deviations(trace)) {
        return Schedule{.kind = Kind::replay, .trace = std::string(trace)};
    }
    return Status{Code::config, fmt::format("schedule '{}' must be eager, lazy, random:<seed>, explore[:<deviations, 0 "
                                            "to {}>], or replay:<trace of a report>",
                                            text, max_deviations)};
}

std::string Schedule::text() const {
    switch (kind) {
        case Kind::eager: return "eager";
        case Kind::lazy: return "lazy";
        case Kind::random: return fmt::format("random:{}", seed);
        case Kind::explore: return deviations < 0 ? "explore" : fmt::format("explore:{}", deviations);
        case Kind::replay: return "replay:" + trace;
    }
    return "?";
}

bool CheckReport::clean() const { return status.ok() && std::ranges::all_of(findings, &Finding::hint); }

std::string CheckReport::text() const {
    std::string text = fmt::format("schedule {}: {} {} in {:.3f} s, {} findings\n", schedule, schedules,
                                   schedules == 1 ? "run" : "runs", seconds, findings.size());
    if (!coverage.empty())
        text += fmt::format("explored {}: {} runs, {} of them redundant, {} steps\n", coverage, schedules, redundant,
                            steps);
    if (minimised_by > 0)
        text += fmt::format("{} further runs found this schedule, which deviates in {} places from the default order\n",
                            minimised_by, deviations);
    if (!repeated)
        text +=
            "another run of this schedule did not fail in this way: the kernel depends on more than the memory that "
            "it accesses through Core; reset such state with before_each\n";
    for (const Finding& finding : findings) text += finding.text() + "\n";
    if (!status.ok()) text += "the launch failed: " + status.message() + "\n";
    return text;
}

class CheckedJob::Impl {
public:
    check::JobParts job;
    Schedule schedule;
    std::function<void()> reset = [] {};

    // Runs once and fills in the findings, the status and the traffic.
    void run_once(const JobLaunch& launch, JobControl& control, CheckReport& report) {
        reset();
        JobRun run(job, launch, control);
        run.run();
        report.findings = job.heap->asymmetries(launch.config.name);
        report.findings.insert(report.findings.end(), run.findings().begin(), run.findings().end());
        report.status = run.status();
        report.remote_signals = run.traffic().signals;
        report.remote_waits = run.traffic().waits;
    }

    void run_steps(const JobLaunch& launch, CheckReport& report) {
        const std::vector<std::byte> before = job.heap->save();
        bool first = true;
        bool failed = false;
        check::explore::LoopBounds loops{};
        check::Exploration exploration(schedule, [&](check::explore::Decisions& decisions) {
            if (!std::exchange(first, false)) job.heap->restore(before);
            check::SteppedControl control(decisions, loops, schedule.max_steps);
            // A schedule that is simplified is known to fail: loops that never end need not show it at length.
            if (failed) control.set_idle_polls(min_idle_polls);
            CheckReport one;
            run_once(launch, control, one);
            failed = failed || !one.clean();
            control.end_run();
            check::Exploration::record(control.decided_run(), one);
            return one;
        });
        if (schedule.kind != Schedule::Kind::explore) return exploration.replay(report);
        exploration.explore(report);
        check::Exploration::name_cut_loop(loops, report);
        report.complete = report.complete && report.clean();
    }

    CheckReport run(const JobLaunch& launch) {
        CheckReport report;
        report.schedule = schedule.text();
        const auto begin = std::chrono::steady_clock::now();
        report.status = prepare(launch);
        report.complete = report.status.ok();
        if (!report.complete) return report;
        if (schedule.kind == Schedule::Kind::explore || schedule.kind == Schedule::Kind::replay) {
            run_steps(launch, report);
        } else {
            JobControl control(schedule);
            run_once(launch, control, report);
            report.schedules = 1;
        }
        report.seconds = std::chrono::duration<double>(std::chrono::steady_clock::now() - begin).count();
        return report;
    }

private:
    Status prepare(const JobLaunch& launch) {
        if (schedule.kind == Schedule::Kind::explore && schedule.max_schedules == 0)
            return {Code::config, "checked job: max_schedules is 0, must be at least 1"};
        for (std::size_t pe = 0; pe < launch.blocks.size(); ++pe) {
            const int blocks = launch.blocks[pe];
            if (blocks < 1 || blocks > job.device.blocks) {
                return {Code::range, fmt::format("launch at {}: block_dim {} on PE {} must be 1 to {} (the device's "
                                                 "number of blocks)",
                                                 text_of(launch.config.where), blocks, pe, job.device.blocks)};
            }
            if (Status status = job.cores[pe]->prepare(blocks * job.device.vector_cores); !status.ok()) return status;
        }
        return {};
    }
};

Result<std::unique_ptr<CheckedJob>> CheckedJob::create(const CheckedJobConfig& config) {
    if (config.pes < 1 || config.pes > 4096) {
        return Status{Code::config, fmt::format("checked job: {} PEs, must be 1 to 4096", config.pes)};
    }
    if (Status status = config.device.validate(); !status.ok()) return status;
    if (const std::size_t limit = config.device.rules.gm_bytes; limit > 0 && config.heap_bytes > limit)
        return Status{Code::config, fmt::format("checked job: heap_bytes is {}, but gm_bytes of the device is {}",
                                                config.heap_bytes, limit)};
    auto heap = JobHeap::create(config.pes, config.heap_bytes);
    if (!heap.ok()) return heap.status();
    auto parts = std::make_unique<Impl>();
    parts->schedule = config.schedule;
    parts->job.device = config.device;
    parts->job.check = config.check;
    parts->job.heap = std::move(heap).value();
    parts->job.watchdog = std::make_unique<check::Watchdog>(config.device.print);
    for (int pe = 0; pe < config.pes; ++pe) {
        auto cores = detail::CoreSet::create(config.device);
        if (!cores.ok()) return cores.status();
        parts->job.cores.push_back(std::move(cores).value());
        parts->job.fabrics.push_back(std::make_unique<check::JobFabric>(*parts->job.heap, pe));
    }
    return std::unique_ptr<CheckedJob>(new CheckedJob(std::move(parts)));
}

CheckedJob::CheckedJob(std::unique_ptr<Impl> parts) : impl_(std::move(parts)) {}
CheckedJob::~CheckedJob() = default;

int CheckedJob::pes() const { return impl_->job.heap->pes(); }

void* CheckedJob::allocate_on(int pe, std::size_t bytes, const Where& where) {
    return impl_->job.heap->allocate(pe, bytes, where);
}

void CheckedJob::release(void* of_pe_0) { impl_->job.heap->release(of_pe_0); }

void* CheckedJob::copy_of(int pe, void* of_pe_0) const {
    const JobHeap& heap = *impl_->job.heap;
    return heap.base(pe) + (static_cast<std::byte*>(of_pe_0) - heap.base(0));
}

void CheckedJob::before_each(std::function<void()> reset) { impl_->reset = std::move(reset); }

CheckReport CheckedJob::run(const LaunchConfig& launch, const Kernel& kernel) {
    return run(
        launch, [&](int) { return launch.block_dim; }, kernel);
}

CheckReport CheckedJob::run(const LaunchConfig& launch, const std::function<int(int pe)>& blocks_of,
                            const Kernel& kernel) {
    JobLaunch job{launch, {}, kernel};
    for (int pe = 0; pe < pes(); ++pe) job.blocks.push_back(blocks_of(pe));
    return impl_->run(job);
}

}  // namespace npushmem::npu
