// SPDX-License-Identifier: BSD-3-Clause
#include "npushmem/npu/checked_hooks.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <map>
#include <mutex>
#include <thread>

#include "core/npu/check/core_checker.hpp"
#include "core/npu/check/job_control.hpp"
#include "core/npu/check/job_records.hpp"
#include "core/npu/check/report_files.hpp"
#include "core/npu/check/shared_steps.hpp"
#include "core/npu/check/watchdog.hpp"
#include "core/npu/running_launch.hpp"
#include "core/npu/source_line.hpp"
#include "npushmem/npu/error.hpp"

namespace npushmem::npu {
namespace {

using check::CoreChecker;
using check::Domain;

// Symmetric memory as a window shows it.
class WindowNames final : public check::MemoryNames {
public:
    explicit WindowNames(const Window& window) : window_(window) {}

    [[nodiscard]] bool cached(Address address) const override {
        return here(address) >= 0 && window_.base % cache_line == 0 && window_.bytes % cache_line == 0;
    }
    [[nodiscard]] std::string refusal(Address, std::size_t) const override { return {}; }
    [[nodiscard]] std::string name_of(Address address) const override {
        if (synthetic_address::is(address)) {
            return fmt::format("symmetric heap + {} of PE {}", synthetic_address::offset_of(address),
                               synthetic_address::pe_of(address));
        }
        const int pe = pe_of(address);
        if (pe < 0) return fmt::format("memory at {:#x}", address);
        return fmt::format("symmetric heap + {} of PE {}", address - window_.base_of(pe), pe);
    }
    [[nodiscard]] bool shared() const override { return true; }
    // See check::PlaceInJob.
    [[nodiscard]] std::uint64_t place_in_job(Address address) const {
        const int pe = here(address);
        return pe < 0 ? 0 : (static_cast<std::uint64_t>(pe) + 1) << offset_bits | (address - window_.base_of(pe));
    }
    [[nodiscard]] int pe_of(Address address) const override {
        return synthetic_address::is(address) ? synthetic_address::pe_of(address) : here(address);
    }

private:
    static constexpr unsigned offset_bits = 44;

    // Its own part is there even where PEs reach all memory, their own too, by a transport.
    [[nodiscard]] int here(Address address) const {
        return address - window_.base < window_.bytes ? window_.my_pe : window_.pe_of(address);
    }

    Window window_;
};

// Peers run in other processes: what they wait for must leave before this PE waits.
class DeviceControl final : public check::JobControl {
public:
    explicit DeviceControl(const Schedule& schedule) : JobControl(schedule) {}
    [[nodiscard]] bool run_deferred_before_wait() const override { return true; }
};

// What the launches of a device have in common.
struct LaunchesConfig {
    Schedule schedule;
    const Fabric& fabric;
    const check::JobLink* link;
    const check::StepSharing* sharing;  // null: nobody grants the steps
};

struct CheckedLaunch {
    // `turn`: held where one launch at a time may take steps.
    CheckedLaunch(const LaunchesConfig& config, int size, std::unique_lock<std::mutex> turn,
                  check::ReportFiles& its_reports)
        : reports(its_reports),
          only_launch(std::move(turn)),
          names(config.fabric.window()),
          steps(config.sharing == nullptr
                    ? nullptr
                    : std::make_unique<check::SharedStepsControl>(
                          *config.sharing, config.fabric.my_pe(),
                          [this](std::uintptr_t address) { return names.place_in_job(address); })),
          control(steps ? nullptr : std::make_unique<DeviceControl>(config.schedule)),
          peers(check::PeerChecks::begin(config.link, config.fabric, size)),
          domain(steps ? static_cast<check::Control&>(*steps) : *control, names, "this launch", peers.get()),
          cores(size) {}

    // One core's part is over; the last one returns the findings.
    Status ended() {
        if (--cores > 0) return {};
        watched.reset();
        domain.launch_ended();
        if (steps) end_steps();
        std::string text;
        bool errors = false;
        for (const Finding& finding : domain.findings.all()) {
            errors = errors || !finding.hint();
            text += "\n" + finding.text();
            if (!finding.hint()) text += reports.write(finding);
        }
        return errors ? Status{Code::protocol, "checked mode found:" + text} : Status{};
    }

    // After the hooks of all cores were made.
    void begin(check::Watchdog& watchdog, detail::RunningLaunch& run) {
        if (steps) share_steps(run);
        watched = watchdog.watch(run.timeout(), [this, title = run.title()](double limit) {
            return domain.calls.describe_stuck(title, limit);
        });
    }

private:
    void share_steps(detail::RunningLaunch& run) {
        check::JobControl::Ends ends;
        ends.deadlocked = [this, &run] { fail(run, "nobody can go on"); };
        ends.on_step_limit = [this, &run](std::uint64_t limit) {
            fail(run, fmt::format("the run has not ended within {} steps", limit));
        };
        steps->attach(domain, false, std::move(ends));
        launch = &run;
        run.schedule_by(steps.get());
    }

    void end_steps() {
        const auto& all = domain.findings.all();
        const auto error = std::ranges::find_if_not(all, &Finding::hint);
        if (error != all.end() || launch->failed())
            steps->report_failure(error != all.end() ? error->hazard : Hazard::none);
        steps->end_launch();
    }

    // Fails the launch with H17, for this reason and with every core that has not ended.
    void fail(detail::RunningLaunch& run, const std::string& why) {
        std::string graph = why + ":";
        const detail::CoreContext* first = nullptr;
        for (int i = 0; i < run.size(); ++i) {
            const detail::CoreContext& core = run.core(i);
            if (core.next == nullptr) continue;
            if (first == nullptr || core.status == detail::CoreStatus::awaiting_word) first = &core;
            graph += fmt::format("\n    PE {} core {} is at {}", core.core->my_pe(), i, text_of(core.where));
        }
        if (first == nullptr) return;
        domain.findings.report(Hazard::deadlock,
                               {first->core->my_pe(), first->core->index(), Pipe::scalar, "the wait", first->where},
                               FindingSide{}, "", graph);
        run.fail(nullptr, {Code::timeout, graph + " [" + id_of(Hazard::deadlock) + "]"});
    }

    check::ReportFiles& reports;
    const detail::RunningLaunch* launch = nullptr;  // that shares its steps
    std::unique_lock<std::mutex> only_launch;
    WindowNames names;
    // One of the two.
    std::unique_ptr<check::SharedStepsControl> steps;
    std::unique_ptr<DeviceControl> control;
    std::unique_ptr<check::PeerChecks> peers;

public:
    Domain domain;

private:
    int cores;
    std::unique_ptr<check::Watchdog::Launch> watched;
};

// Launches of a device may begin on several threads; the cores of one are made on one thread, core 0 first.
class Launches {
public:
    Launches(const LaunchesConfig& config, const std::string& report_path)
        : config_(config), reports_(report_path, config.fabric.my_pe()) {}

    std::unique_ptr<CoreHooks> make(Core& core) {
        const std::shared_ptr<CheckedLaunch> launch = launch_of(core);
        // What hardware keeps behind the kernels' part matters to none of the checks that are made here.
        const detail::UbRegion ub{core.ub_at<std::byte>(0, 0).data(), core.ub_free(), 0};
        if (core.index() == core.count() - 1) launch->begin(watchdog_, *core.context()->run);
        return std::make_unique<CoreChecker>(std::shared_ptr<Domain>(launch, &launch->domain), core, ub,
                                             [launch] { return launch->ended(); });
    }

private:
    std::shared_ptr<CheckedLaunch> launch_of(const Core& core) {
        std::unique_lock<std::mutex> turn;
        if (config_.sharing != nullptr && core.index() == 0) turn = std::unique_lock(only_launch_);
        const std::lock_guard lock(mutex_);
        std::shared_ptr<CheckedLaunch>& launch = beginning_[std::this_thread::get_id()];
        if (core.index() == 0)
            launch = std::make_shared<CheckedLaunch>(config_, core.count(), std::move(turn), reports_);
        std::shared_ptr<CheckedLaunch> result = launch;
        if (core.index() == core.count() - 1) beginning_.erase(std::this_thread::get_id());
        return result;
    }

    LaunchesConfig config_;
    check::ReportFiles reports_;
    std::mutex only_launch_;  // held by the launch that takes steps
    check::Watchdog watchdog_{{}};
    std::mutex mutex_;
    std::map<std::thread::id, std::shared_ptr<CheckedLaunch>> beginning_;
};

}  // namespace

Result<HooksFactory> checked_hooks(const Schedule& schedule, const Fabric& fabric) {
    return check::job_hooks(schedule, fabric, nullptr, nullptr);
}

Result<HooksFactory> check::job_hooks(const Schedule& schedule, const Fabric& fabric, const JobLink* link,
                                      const StepSharing* sharing, const std::string& report_path) {
    if (schedule.kind == Schedule::Kind::explore || schedule.kind == Schedule::Kind::replay) {
        return Status{Code::config,
                      "checked mode: explore and replay need npushmem-run --npu-check, or all PEs in one process "
                      "(CheckedJob); a device runs eager, lazy or random:<seed>"};
    }
    const auto launches = std::make_shared<Launches>(LaunchesConfig{schedule, fabric, link, sharing}, report_path);
    return HooksFactory([launches](Core& core) { return launches->make(core); });
}

}  // namespace npushmem::npu
