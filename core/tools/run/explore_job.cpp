// SPDX-License-Identifier: BSD-3-Clause
#include "core/tools/run/explore_job.hpp"

#include <fcntl.h>
#include <fmt/format.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <atomic>
#include <cerrno>
#include <csignal>
#include <cstdio>
#include <cstring>
#include <functional>
#include <string>
#include <thread>
#include <variant>

#include "core/base/streams.hpp"
#include "core/npu/check/job/exploration.hpp"
#include "core/npu/check/processes/step_scheduler.hpp"
#include "core/tools/run/exit_record.hpp"
#include "core/tools/run/job_preparation.hpp"
#include "core/tools/run/start_job.hpp"

namespace npushmem::run {

using npu::CheckReport;
using npu::Finding;
using npu::Hazard;
using npu::Schedule;
using npu::check::StepTurns;

namespace {

// A run of a job takes many times longer than one of a CheckedJob.
constexpr std::uint64_t max_minimising_runs = 200;

int failed(const std::string& message) {
    write_error(fmt::format("npushmem-run: {}\n", message));
    return exit_launcher_failed;
}

// What one run writes to standard output and standard error. PEs share the position in each file, so that those that
// write at the same time do not write to the same place.
class RunOutput {
public:
    [[nodiscard]] bool open() {
        for (FileDescriptor& file : files_) {
            const FileDescriptor memory(::memfd_create("npushmem-run output", MFD_CLOEXEC | MFD_ALLOW_SEALING));
            // Linux moves the shared position atomically for files that open() has opened, but not for this one.
            const std::string path = fmt::format("/proc/self/fd/{}", memory.get());
            file = FileDescriptor(::open(path.c_str(), O_RDWR | O_CLOEXEC));
        }
        // Writes beyond the end fail.
        return std::ranges::all_of(files_, [](const FileDescriptor& file) {
            return file.valid() && ::ftruncate(file.get(), max_bytes) == 0 &&
                   ::fcntl(file.get(), F_ADD_SEALS, F_SEAL_GROW) == 0;
        });
    }
    void clear() {
        for (const FileDescriptor& file : files_) {
            (void)::fallocate(file.get(), FALLOC_FL_PUNCH_HOLE | FALLOC_FL_KEEP_SIZE, 0, max_bytes);
            (void)::lseek(file.get(), 0, SEEK_SET);
        }
    }
    // Of the calling process, which gets no input.
    void become_streams() const {
        const FileDescriptor null(::open("/dev/null", O_RDONLY | O_CLOEXEC));
        (void)::dup2(null.get(), STDIN_FILENO);
        (void)::dup2(files_[0].get(), STDOUT_FILENO);
        (void)::dup2(files_[1].get(), STDERR_FILENO);
    }
    // Standard output and standard error.
    [[nodiscard]] std::array<std::string, 2> texts() const { return {contents(files_[0]), contents(files_[1])}; }

private:
    static constexpr off_t max_bytes = off_t{64} << 20;

    static std::string contents(const FileDescriptor& file) {
        const off_t written = ::lseek(file.get(), 0, SEEK_CUR);
        std::string text(static_cast<std::size_t>(std::max<off_t>(written, 0)), 0);
        std::size_t have = 0;
        ssize_t length = 1;
        while (have < text.size() && length > 0) {
            length = ::pread(file.get(), text.data() + have, text.size() - have, static_cast<off_t>(have));
            have += static_cast<std::size_t>(std::max<ssize_t>(length, 0));
        }
        text.resize(have);
        if (written == max_bytes) text += "\nnpushmem-run: the run's further output is lost\n";
        return text;
    }

    std::array<FileDescriptor, 2> files_;
};

class ScheduledJob {
public:
    ScheduledJob(Options options, const char* const* environment, const Schedule& schedule)
        : options_(std::move(options)), environment_(environment), schedule_(schedule) {
        keeps_output_ = schedule.kind == Schedule::Kind::explore;
    }

    Status prepare() {
        auto memory = SharedSegment::create((sizeof(StepTurns) + 4095) / 4096 * 4096, {});
        if (!memory.ok()) return memory.status();
        memory_ = std::move(memory).value();
        if (Status status = memory_.commit(0, memory_.bytes()); !status.ok()) return status;
        if (!output_.open()) return {Code::system, std::strerror(errno)};
        options_.exports.push_back({"NPUSHMEM_NPU_SCHEDULE", StepTurns::text_of(memory_.handle())});
        return {};
    }

    CheckReport run(npu::check::explore::Decisions& decisions) {
        const auto loops = turns().loops;
        std::memset(memory_.base(), 0, sizeof(StepTurns));
        turns().loops = loops;
        turns().max_steps = schedule_.max_steps;
        output_.clear();
        npu::check::StepScheduler scheduler(turns(), options_.npes, decisions, os_);
        const int pid = ::fork();
        if (pid == 0) run_in_child();
        std::atomic<bool> ended{false};
        std::thread waiter([&] {
            wait_for(pid);
            ended.store(true, std::memory_order_release);
            turns().notify_scheduler();
        });
        scheduler.run(ended);
        waiter.join();
        if (is_meaningless(scheduler)) exit_status_ = 0;
        return report_of(scheduler);
    }
    // The output of the last run is to be shown.
    void keep_output() { shown_ = {exit_status_, output_.texts()}; }

    // Of the run that was kept last.
    void show_output() const {
        write_output(shown_.output[0]);
        write_error(shown_.output[1]);
    }
    [[nodiscard]] int exit_status() const { return shown_.exit_status; }
    [[nodiscard]] const npu::check::explore::LoopBounds& loops() const { return turns().loops; }

private:
    struct ShownRun {
        int exit_status = 0;
        std::array<std::string, 2> output;
    };

    [[nodiscard]] StepTurns& turns() const { return *reinterpret_cast<StepTurns*>(memory_.base()); }

    [[noreturn]] void run_in_child() {
        // The launcher ends the job when this process has ended.
        (void)::prctl(PR_SET_PDEATHSIG, SIGTERM);
        if (keeps_output_) output_.become_streams();
        auto plan = prepare_job(options_, environment_);
        int status = exit_launcher_failed;
        if (const auto* exit = std::get_if<EarlyExit>(&plan)) {
            write_error(exit->text);
            status = exit->status;
        } else {
            status = run_job(options_, std::get<JobPlan>(std::move(plan)));
        }
        (void)std::fflush(nullptr);
        ::_exit(status);
    }

    void wait_for(int pid) {
        int status = 0;
        while (::waitpid(pid, &status, 0) < 0 && errno == EINTR) {
        }
        exit_status_ = pid > 0 && WIFEXITED(status) ? WEXITSTATUS(status) : exit_launcher_failed;
    }

    // Whether the run only repeated others and was ended for its length: the step limit appears as H17.
    [[nodiscard]] bool is_meaningless(const npu::check::StepScheduler& scheduler) const {
        const std::uint32_t failure = turns().hazard.load();
        return scheduler.abandoned() && (failure == 0 || failure == StepTurns::kernel_failed ||
                                         failure == static_cast<std::uint32_t>(Hazard::deadlock));
    }

    [[nodiscard]] CheckReport report_of(const npu::check::StepScheduler& scheduler) const {
        CheckReport report;
        npu::check::Exploration::record(scheduler.decided_run(), report);
        const std::uint32_t failure = turns().hazard.load();
        if (is_meaningless(scheduler)) return report;
        if (failure == StepTurns::kernel_failed)
            report.status = {Code::aborted, "a kernel failed"};
        else if (failure != 0)
            report.findings.emplace_back().hazard = static_cast<Hazard>(failure);
        else if (const std::uint32_t hint = turns().hint.load(); hint != 0)
            report.findings.emplace_back().hazard = static_cast<Hazard>(hint);
        const bool found = std::ranges::any_of(report.findings, std::not_fn(&Finding::hint));
        if (exit_status_ != 0) report.status = {Code::aborted, fmt::format("the job exited with {}", exit_status_)};
        if (!found && !scheduler.obstacle().empty()) report.status = {Code::state, scheduler.obstacle()};
        return report;
    }

    Options options_;
    const char* const* environment_;
    const Schedule& schedule_;
    bool keeps_output_;
    SharedSegment memory_;
    RunOutput output_;
    SystemWaitOs os_;
    int exit_status_ = 0;  // of the last run
    ShownRun shown_;
};

std::string describe(const CheckReport& report) {
    std::string text;
    const std::string runs =
        fmt::format("{} {} of the job, {} of them redundant, {} steps in {:.1f} s", report.schedules,
                    report.schedules == 1 ? "run" : "runs", report.redundant, report.steps, report.seconds);
    const std::string again =
        fmt::format("npushmem-run: run this schedule again with --npu-check={}\n", report.schedule);
    for (const Finding& finding : report.findings)
        text += fmt::format("npushmem-run: checked mode found {}{}\n", npu::id_of(finding.hazard),
                            finding.hint() ? ", a hint" : "");
    const char* const clean = report.findings.empty() ? "no finding" : "no error";
    if (report.clean() && report.coverage.empty())
        return text + fmt::format("npushmem-run: {} in {}\n", clean, runs) + again;
    if (report.clean()) return text + fmt::format("npushmem-run: {}; explored {}: {}\n", clean, report.coverage, runs);
    if (!report.status.ok()) text += fmt::format("npushmem-run: {}\n", report.status.message());
    text += fmt::format("npushmem-run: after {}\n", runs);
    if (report.minimised_by > 0)
        text += fmt::format(
            "npushmem-run: {} further runs looked for a schedule with fewer deviations from the default "
            "order; {} are left\n",
            report.minimised_by, report.deviations);
    if (!report.repeated)
        text +=
            "npushmem-run: another run of this schedule did not fail in this way: the program depends on more than "
            "the schedule\n";
    return text + again;
}

void run_schedules(const Schedule& schedule, ScheduledJob& job, CheckReport& report) {
    npu::check::Exploration exploration(
        schedule, [&job](npu::check::explore::Decisions& decisions) { return job.run(decisions); },
        std::min(max_minimising_runs, schedule.max_schedules), [&job] { job.keep_output(); });
    if (schedule.kind == Schedule::Kind::explore) {
        exploration.explore(report);
        return npu::check::Exploration::name_cut_loop(job.loops(), report);
    }
    if (schedule.kind == Schedule::Kind::random) return exploration.draw(report);
    exploration.replay(report);
}

}  // namespace

bool needs_scheduler(const Options& options) {
    const auto schedule = Schedule::parse(options.npu_check);
    return schedule.ok() && schedule.value().kind != Schedule::Kind::eager &&
           schedule.value().kind != Schedule::Kind::lazy;
}

int run_scheduled_job(Options options, const char* const* environment) {
    if (!options.hosts.empty() || options.nodes > 0 || options.npes > StepTurns::max_pes)
        return failed(fmt::format("--npu-check={} needs all PEs on one host, and at most {} of them", options.npu_check,
                                  StepTurns::max_pes));
    Schedule schedule = Schedule::parse(options.npu_check).value();
    schedule.max_schedules = options.npu_check_runs;
    const auto plan = prepare_job(options, environment);
    if (const auto* exit = std::get_if<EarlyExit>(&plan)) {
        write_error(exit->text);
        return exit->status;
    }
    const std::string wanted = options.npu_check;
    ScheduledJob job(std::move(options), environment, schedule);
    if (const Status status = job.prepare(); !status.ok()) return failed("--npu-check: " + status.message());
    const auto begin = std::chrono::steady_clock::now();
    CheckReport report;
    report.schedule = schedule.text();
    run_schedules(schedule, job, report);
    report.seconds = std::chrono::duration<double>(std::chrono::steady_clock::now() - begin).count();
    job.show_output();
    if (report.clean() && report.steps == 0)
        return failed(
            fmt::format("--npu-check={}: no kernel took a step: the program launches none, or does not use "
                        "npushmem; nothing was checked",
                        wanted));
    write_error(describe(report));
    if (report.clean()) return job.exit_status();
    return job.exit_status() != 0 ? job.exit_status() : EXIT_FAILURE;
}

}  // namespace npushmem::run
