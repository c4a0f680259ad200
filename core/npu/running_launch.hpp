// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include <chrono>
#include <cstdint>
#include <memory>
#include <string>

#include "core/npu/core_set.hpp"
#include "npushmem/npu/fabric.hpp"
#include "npushmem/npu/launch.hpp"

namespace npushmem::npu::detail {

class Scheduler;

// A launch from the moment it is queued until it ends.
struct QueuedLaunch {
    LaunchConfig config;
    std::unique_ptr<KernelBody> body;
    std::uint64_t queued_at = 0;  // see RunningLaunch

    // Title for messages: the launch's name, or the source line of the launch.
    [[nodiscard]] std::string title() const;
};

// A running launch: its cores, their common barrier, and its first failure. One class, because the three determine each
// other: a core that ends or fails also fails the barrier in which others wait, and a failure ends every core. Thread
// rule: one thread uses it.
class RunningLaunch {
public:
    RunningLaunch(const QueuedLaunch& job, const DeviceConfig& device, const Fabric& fabric, CoreSet& cores);
    RunningLaunch(const RunningLaunch&) = delete;
    RunningLaunch& operator=(const RunningLaunch&) = delete;

    [[nodiscard]] std::string title() const { return job_.title(); }
    // What the device's LaunchObserver returned when the launch was queued; 0: it has none.
    [[nodiscard]] std::uint64_t queued_at() const { return job_.queued_at; }
    [[nodiscard]] int size() const { return size_; }
    [[nodiscard]] CoreContext& core(int index) { return cores_[index]; }
    // Number of cores whose kernel has not ended.
    [[nodiscard]] int live() const { return live_; }
    // True: every core unwinds at its next wait.
    [[nodiscard]] bool failed() const { return !failure_.ok(); }
    [[nodiscard]] const Status& failure() const { return failure_; }
    [[nodiscard]] std::chrono::nanoseconds timeout() const { return timeout_; }
    // On the steady clock; 0: no deadline.
    [[nodiscard]] std::chrono::nanoseconds deadline() const { return deadline_; }
    void fix_deadline(std::chrono::nanoseconds now) { deadline_ = now + timeout_; }
    [[nodiscard]] std::chrono::nanoseconds default_wait_timeout() const { return device_.wait_timeout; }
    [[nodiscard]] const DeviceRules& rules() const { return device_.rules; }
    [[nodiscard]] std::uint64_t barriers_passed() const { return barriers_passed_; }
    // Chooses the cores that run; null: the runner does. Set before the launch is added to a runner.
    void schedule_by(Scheduler* scheduler) { scheduler_ = scheduler; }
    [[nodiscard]] Scheduler* scheduler() const { return scheduler_; }

    // Whether some core waits for another PE. That wait explains why other cores still wait in core_barrier, so it is
    // the one to report.
    [[nodiscard]] bool awaits_peer();

    // Runs the kernel on the calling context. A failure of the kernel becomes the launch's failure.
    void execute(CoreContext& context);
    // Counts one more core at the core barrier. Returns true for the last one: all cores may continue.
    bool arrive(CoreContext& context);
    // Records the failure; only the first one counts. `context` is null when no core caused it.
    void fail(const CoreContext* context, const Status& why);

private:
    void prepare(int index, const Window& window);
    void run_body(CoreContext& context);
    void complete(CoreContext& context);
    void end(CoreContext& context);
    void fail_barrier(const CoreContext& context);
    void add_findings(const Status& found);

    const QueuedLaunch& job_;
    const DeviceConfig& device_;
    const Fabric& fabric_;
    CoreSet& cores_;
    int size_;
    int live_;
    int arrived_ = 0;
    std::uint64_t barriers_passed_ = 0;
    Scheduler* scheduler_ = nullptr;
    std::chrono::nanoseconds timeout_;
    std::chrono::nanoseconds deadline_{0};
    Status failure_;
};

}  // namespace npushmem::npu::detail
