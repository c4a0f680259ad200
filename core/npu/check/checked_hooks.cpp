// SPDX-License-Identifier: BSD-3-Clause
#include "npushmem/npu/checked_hooks.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <functional>
#include <map>
#include <mutex>
#include <optional>
#include <set>
#include <thread>

#include "core/base/streams.hpp"
#include "core/npu/check/cores/core_checker.hpp"
#include "core/npu/check/job/job_control.hpp"
#include "core/npu/check/processes/job_records.hpp"
#include "core/npu/check/processes/shared_steps.hpp"
#include "core/npu/check/report/report_files.hpp"
#include "core/npu/check/watchdog.hpp"
#include "core/npu/launch_observer.hpp"
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
    WindowNames(const Window& window, const check::JobServices& services)
        : window_(window), refusal_(services.refusal), symmetric_of_(services.symmetric_of) {}

    [[nodiscard]] bool cached(Address address) const override {
        return here(address) >= 0 && window_.base % cache_line == 0 && window_.bytes % cache_line == 0;
    }
    [[nodiscard]] std::string refusal(Address address, std::size_t bytes) const override {
        if (!refusal_) return {};
        if (synthetic_address::is(address)) return refusal_(synthetic_address::offset_of(address), bytes);
        const int pe = here(address);
        return pe < 0 ? std::string{} : refusal_(address - window_.base_of(pe), bytes);
    }
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
    // See check::PlaceInJob. Global variables of the program are outside the window.
    [[nodiscard]] std::uint64_t place_in_job(Address address) const {
        if (const int pe = here(address); pe >= 0) return place_of(pe, address - window_.base_of(pe));
        const auto symmetric = symmetric_of_ ? symmetric_of_(address) : std::nullopt;
        return symmetric ? place_of(symmetric->pe, symmetric->offset) : 0;
    }
    [[nodiscard]] int pe_of(Address address) const override {
        return synthetic_address::is(address) ? synthetic_address::pe_of(address) : here(address);
    }

private:
    static constexpr unsigned offset_bits = 44;

    [[nodiscard]] static std::uint64_t place_of(int pe, std::uint64_t offset) {
        return (static_cast<std::uint64_t>(pe) + 1) << offset_bits | offset;
    }
    // Its own part is there even where PEs reach all memory, their own too, by a transport.
    [[nodiscard]] int here(Address address) const {
        return address - window_.base < window_.bytes ? window_.my_pe : window_.pe_of(address);
    }

    Window window_;
    std::function<std::string(std::uint64_t, std::size_t)> refusal_;
    std::function<std::optional<check::SymmetricPlace>(std::uintptr_t)> symmetric_of_;
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
    check::JobServices services;
};

// Prints hints, each once.
class Hints {
public:
    void print(const Finding& hint) {
        const std::lock_guard lock(mutex_);
        const std::string lines = text_of(hint.here.where) + text_of(hint.other.where) + hint.other.elsewhere;
        if (printed_.insert(lines).second) write_error(fmt::format("npushmem: checked mode: {}\n", hint.text()));
    }

private:
    std::mutex mutex_;
    std::set<std::string> printed_;
};

struct CheckedLaunch {
    // `turn`: held where one launch at a time may take steps. `queued_at`: host barriers before the launch.
    CheckedLaunch(const LaunchesConfig& config, int size, std::uint64_t queued_at, std::unique_lock<std::mutex> turn,
                  check::ReportFiles& its_reports, Hints& its_hints)
        : reports(its_reports),
          hints(its_hints),
          only_launch(std::move(turn)),
          names(config.fabric.window(), config.services),
          steps(config.services.sharing == nullptr
                    ? nullptr
                    : std::make_unique<check::SharedStepsControl>(
                          *config.services.sharing, config.fabric.my_pe(), queued_at,
                          [this](std::uintptr_t address) { return names.place_in_job(address); },
                          [this](int pe) { fail_for_late_host(pe); })),
          control(steps ? nullptr : std::make_unique<DeviceControl>(config.schedule)),
          peers(check::PeerChecks::begin(config.services.link, config.fabric, size, queued_at,
                                         !config.services.report_path.empty())),
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
        for (const Finding& finding : domain.findings.all())
            if (finding.hint() && !errors) hints.print(finding);
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
        // The scheduler reports the changes by other processes.
        steps->attach(domain, true, std::move(ends));
        launch = &run;
        run.schedule_by(steps.get());
    }

    void end_steps() {
        const auto& all = domain.findings.all();
        const auto error = std::ranges::find_if_not(all, &Finding::hint);
        if (error != all.end() || launch->failed())
            steps->report_failure(error != all.end() ? error->hazard : Hazard::none);
        else if (!all.empty())
            steps->report_hint(all.front().hazard);
        steps->end_launch();
    }

    [[nodiscard]] static const void* awaited_by(const detail::CoreContext& core) {
        return core.status == detail::CoreStatus::awaiting_word ? core.condition.word : core.polled;
    }

    void fail_for_late_host(int pe) {
        launch->fail(nullptr, {Code::timeout, fmt::format("the kernels wait for the host of PE {}", pe)});
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
            const bool awaits = core.status == detail::CoreStatus::awaiting_word;
            domain.events.record_waiting(core.core->my_pe(), i, core.where, awaited_by(core),
                                         awaits ? core.condition.value : 0);
        }
        if (first == nullptr) return;
        const void* const word = awaited_by(*first);
        const check::Access writer =
            word != nullptr ? domain.memory.last_writer_of(check::number_of(word)) : check::Access{};
        domain.findings.report(Hazard::deadlock,
                               {first->core->my_pe(), first->core->index(), Pipe::scalar, "the wait", first->where},
                               writer, "", graph);
        run.fail(nullptr, {Code::timeout, graph + " [" + id_of(Hazard::deadlock) + "]"});
    }

    check::ReportFiles& reports;
    Hints& hints;
    detail::RunningLaunch* launch = nullptr;  // that shares its steps
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
class Launches final : public detail::LaunchObserver {
public:
    explicit Launches(const LaunchesConfig& config)
        : config_(config), reports_(config.services.report_path, config.fabric.my_pe()) {}

    // Returns the number of host barriers that the host has entered.
    std::uint64_t launches_changed(std::size_t unfinished) override {
        if (config_.services.sharing != nullptr)
            config_.services.sharing->turns().publish_launches(config_.fabric.my_pe(), unfinished);
        return config_.services.link != nullptr ? config_.services.link->host_barrier() : 0;
    }
    void hosts_waiting(int threads) override {
        if (config_.services.sharing != nullptr)
            config_.services.sharing->turns().publish_synchronizing(config_.fabric.my_pe(), threads > 0);
    }

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
        if (config_.services.sharing != nullptr && core.index() == 0) turn = std::unique_lock(only_launch_);
        const std::lock_guard lock(mutex_);
        std::shared_ptr<CheckedLaunch>& launch = beginning_[std::this_thread::get_id()];
        if (core.index() == 0)
            launch = std::make_shared<CheckedLaunch>(config_, core.count(), core.context()->run->queued_at(),
                                                     std::move(turn), reports_, hints_);
        std::shared_ptr<CheckedLaunch> result = launch;
        if (core.index() == core.count() - 1) beginning_.erase(std::this_thread::get_id());
        return result;
    }

    LaunchesConfig config_;
    check::ReportFiles reports_;
    Hints hints_;
    std::mutex only_launch_;  // held by the launch that takes steps
    check::Watchdog watchdog_{{}};
    std::mutex mutex_;
    std::map<std::thread::id, std::shared_ptr<CheckedLaunch>> beginning_;
};

}  // namespace

Result<HooksFactory> checked_hooks(const Schedule& schedule, const Fabric& fabric) {
    return check::job_hooks(schedule, fabric, {});
}

Result<HooksFactory> check::job_hooks(const Schedule& schedule, const Fabric& fabric, const JobServices& services) {
    if (schedule.kind == Schedule::Kind::explore || schedule.kind == Schedule::Kind::replay) {
        return Status{Code::config,
                      "checked mode: explore and replay need npushmem-run --npu-check, or all PEs in one process "
                      "(CheckedJob); a device runs eager, lazy or random:<seed>"};
    }
    const auto launches = std::make_shared<Launches>(LaunchesConfig{schedule, fabric, services});
    return HooksFactory(detail::ObservingHooks{[launches](Core& core) { return launches->make(core); }, launches});
}

}  // namespace npushmem::npu
