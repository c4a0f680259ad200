// SPDX-License-Identifier: BSD-3-Clause
#include "npushmem/npu/checked_job.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <charconv>
#include <chrono>

#include "core/npu/check/job_run.hpp"
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

constexpr std::uint64_t max_deferrals = 8;

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
    if (name == "explore" && number_ok && number <= max_deferrals) {
        return Schedule{.kind = Kind::explore, .deferrals = static_cast<int>(number)};
    }
    return Status{Code::config, fmt::format("schedule '{}' must be eager, lazy, random:<seed>, or explore[:<places "
                                            "that differ, 0 to {}>]",
                                            text, max_deferrals)};
}

std::string Schedule::text() const {
    switch (kind) {
        case Kind::eager: return "eager";
        case Kind::lazy: return "lazy";
        case Kind::random: return fmt::format("random:{}", seed);
        case Kind::explore: return fmt::format("explore:{}", deferrals);
    }
    return "?";
}

bool CheckReport::clean() const { return status.ok() && std::ranges::all_of(findings, &Finding::hint); }

std::string CheckReport::text() const {
    std::string text =
        fmt::format("schedule {}: {} {} in {:.3f} s{}, {} findings\n", schedule, schedules,
                    schedules == 1 ? "run" : "runs", seconds, complete ? "" : " (bound reached)", findings.size());
    for (const Finding& finding : findings) text += finding.text() + "\n";
    if (!status.ok()) text += "the launch failed: " + status.message() + "\n";
    return text;
}

class CheckedJob::Impl {
public:
    check::JobParts job;
    Schedule schedule;
    std::function<void()> reset = [] {};

    // Runs under one schedule and adds its findings to `report`. Returns the number of places where it could have
    // differed.
    std::uint64_t run_once(const JobLaunch& launch, const std::vector<std::uint64_t>& deferred, CheckReport& report) {
        reset();
        JobControl control(schedule, deferred);
        JobRun run(job, launch, control);
        run.run();
        report.findings = job.heap->asymmetries(launch.config.name);
        report.findings.insert(report.findings.end(), run.findings().begin(), run.findings().end());
        report.status = run.status();
        report.remote_signals = run.traffic().signals;
        report.remote_waits = run.traffic().waits;
        ++report.schedules;
        return control.places();
    }

    // Depth first: each schedule is tried before those that differ from it in one later place more.
    void explore(const JobLaunch& launch, CheckReport& report) {
        const std::vector<std::byte> before = job.heap->save();
        std::vector<std::vector<std::uint64_t>> open{{}};
        while (!open.empty()) {
            const std::vector<std::uint64_t> deferred = std::move(open.back());
            open.pop_back();
            if (report.schedules == schedule.max_schedules) {
                report.complete = false;
                return;
            }
            if (report.schedules > 0) job.heap->restore(before);
            const std::uint64_t places = run_once(launch, deferred, report);
            if (!report.clean()) {
                report.schedule += fmt::format(", set aside at [{}]", fmt::join(deferred, ", "));
                return;
            }
            if (deferred.size() == static_cast<std::size_t>(schedule.deferrals)) continue;
            for (std::uint64_t place = places; place-- > (deferred.empty() ? 0 : deferred.back() + 1);) {
                open.push_back(deferred);
                open.back().push_back(place);
            }
        }
    }

    CheckReport run(const JobLaunch& launch) {
        CheckReport report;
        report.schedule = schedule.text();
        const auto begin = std::chrono::steady_clock::now();
        report.status = prepare(launch);
        if (report.status.ok() && schedule.kind == Schedule::Kind::explore)
            explore(launch, report);
        else if (report.status.ok())
            run_once(launch, {}, report);
        report.seconds = std::chrono::duration<double>(std::chrono::steady_clock::now() - begin).count();
        return report;
    }

private:
    Status prepare(const JobLaunch& launch) {
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
