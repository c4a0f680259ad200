// SPDX-License-Identifier: BSD-3-Clause
#include "npushmem/npu/checked_hooks.hpp"

#include <fmt/format.h>

#include <map>
#include <mutex>
#include <thread>

#include "core/npu/check/core_checker.hpp"
#include "core/npu/check/job_control.hpp"
#include "core/npu/check/job_records.hpp"
#include "core/npu/check/report_files.hpp"
#include "core/npu/check/watchdog.hpp"
#include "core/npu/running_launch.hpp"
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
    [[nodiscard]] int pe_of(Address address) const override {
        return synthetic_address::is(address) ? synthetic_address::pe_of(address) : here(address);
    }

private:
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

struct CheckedLaunch {
    CheckedLaunch(const Schedule& schedule, const Fabric& fabric, const check::JobLink* link, int size,
                  check::ReportFiles& its_reports)
        : reports(its_reports),
          control(schedule),
          names(fabric.window()),
          peers(check::PeerChecks::begin(link, fabric, size)),
          domain(control, names, "this launch", peers.get()),
          cores(size) {}

    // One core's part is over; the last one returns the findings.
    Status ended() {
        if (--cores > 0) return {};
        watched.reset();
        domain.launch_ended();
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
    void begin(check::Watchdog& watchdog, const detail::RunningLaunch& run) {
        watched = watchdog.watch(run.timeout(), [this, title = run.title()](double limit) {
            return domain.calls.describe_stuck(title, limit);
        });
    }

    check::ReportFiles& reports;
    DeviceControl control;
    WindowNames names;
    std::unique_ptr<check::PeerChecks> peers;
    Domain domain;
    int cores;
    std::unique_ptr<check::Watchdog::Launch> watched;
};

// Launches of a device may begin on several threads; the cores of one are made on one thread, core 0 first.
class Launches {
public:
    Launches(const Schedule& schedule, const Fabric& fabric, const check::JobLink* link, const std::string& report_path)
        : schedule_(schedule), fabric_(fabric), link_(link), reports_(report_path, fabric.my_pe()) {}

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
        const std::lock_guard lock(mutex_);
        std::shared_ptr<CheckedLaunch>& launch = beginning_[std::this_thread::get_id()];
        if (core.index() == 0)
            launch = std::make_shared<CheckedLaunch>(schedule_, fabric_, link_, core.count(), reports_);
        std::shared_ptr<CheckedLaunch> result = launch;
        if (core.index() == core.count() - 1) beginning_.erase(std::this_thread::get_id());
        return result;
    }

    Schedule schedule_;
    const Fabric& fabric_;
    const check::JobLink* link_;
    check::ReportFiles reports_;
    check::Watchdog watchdog_{{}};
    std::mutex mutex_;
    std::map<std::thread::id, std::shared_ptr<CheckedLaunch>> beginning_;
};

}  // namespace

Result<HooksFactory> checked_hooks(const Schedule& schedule, const Fabric& fabric) {
    return check::job_hooks(schedule, fabric, nullptr);
}

Result<HooksFactory> check::job_hooks(const Schedule& schedule, const Fabric& fabric, const JobLink* link,
                                      const std::string& report_path) {
    if (schedule.kind == Schedule::Kind::explore || schedule.kind == Schedule::Kind::replay) {
        return Status{Code::config,
                      "checked mode: explore and replay need all PEs in one process (CheckedJob); a device runs "
                      "eager, lazy or random:<seed>"};
    }
    const auto launches = std::make_shared<Launches>(schedule, fabric, link, report_path);
    return HooksFactory([launches](Core& core) { return launches->make(core); });
}

}  // namespace npushmem::npu
