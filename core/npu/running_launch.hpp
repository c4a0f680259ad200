#pragma once

#include <chrono>
#include <cstdint>
#include <memory>
#include <string>

#include "core/npu/core_set.hpp"
#include "npushmem/npu/fabric.hpp"
#include "npushmem/npu/launch.hpp"

namespace npushmem::npu::detail {

// A launch from the moment it is queued.
struct QueuedLaunch {
    LaunchConfig config;
    std::unique_ptr<KernelBody> body;

    // As messages call it: its name, or where it was launched.
    [[nodiscard]] std::string title() const;
};

// A launch while it runs: its cores, their common barrier, and its first failure.
// Used by one thread only.
class RunningLaunch {
public:
    RunningLaunch(const QueuedLaunch& job, const DeviceConfig& device, const Fabric& fabric, CoreSet& cores);
    RunningLaunch(const RunningLaunch&) = delete;
    RunningLaunch& operator=(const RunningLaunch&) = delete;

    [[nodiscard]] std::string title() const { return job_.title(); }
    [[nodiscard]] int size() const { return size_; }
    [[nodiscard]] CoreContext& core(int index) { return cores_[index]; }
    // Cores that have not ended their kernel.
    [[nodiscard]] int live() const { return live_; }
    // True: every core shall unwind at its next wait.
    [[nodiscard]] bool failed() const { return !failure_.ok(); }
    [[nodiscard]] const Status& failure() const { return failure_; }
    [[nodiscard]] std::chrono::nanoseconds timeout() const { return timeout_; }
    // On the steady clock; 0: none.
    [[nodiscard]] std::chrono::nanoseconds deadline() const { return deadline_; }
    void fix_deadline(std::chrono::nanoseconds now) { deadline_ = now + timeout_; }
    [[nodiscard]] std::chrono::nanoseconds default_wait_timeout() const { return device_.wait_timeout; }
    [[nodiscard]] std::uint64_t barriers_passed() const { return barriers_passed_; }

    // Some core waits for another PE: then that is why others still wait in core_barrier, and what shall be reported.
    [[nodiscard]] bool awaits_peer();

    // Runs the kernel on the calling context; a failure becomes the launch's.
    void execute(CoreContext& context);
    // One more core at the barrier. True: it was the last, all may go on.
    bool arrive(CoreContext& context);
    // The first failure counts. `context` may be null when no core is to blame.
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
    std::chrono::nanoseconds timeout_;
    std::chrono::nanoseconds deadline_{0};
    Status failure_;
};

}  // namespace npushmem::npu::detail
