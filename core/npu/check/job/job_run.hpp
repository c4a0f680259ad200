// SPDX-License-Identifier: BSD-3-Clause
// One run of a kernel on all PEs of a checked job, under one schedule.
#pragma once

#include <memory>
#include <string>
#include <vector>

#include "core/npu/check/cores/core_checker.hpp"
#include "core/npu/check/job/job_control.hpp"
#include "core/npu/check/job/job_heap.hpp"
#include "core/npu/check/watchdog.hpp"
#include "core/npu/runner.hpp"
#include "npushmem/npu/checked_hooks.hpp"

namespace npushmem::npu::check {

// What lives longer than one run.
struct JobParts {
    DeviceConfig device;
    bool check = true;
    std::unique_ptr<JobHeap> heap;
    std::vector<std::unique_ptr<JobFabric>> fabrics;
    std::vector<std::unique_ptr<detail::CoreSet>> cores;
    std::unique_ptr<Watchdog> watchdog;
};

// What is launched.
struct JobLaunch {
    const LaunchConfig& config;
    std::vector<int> blocks;  // per PE
    const std::function<void(Core&)>& kernel;
};

class JobRun {
public:
    JobRun(JobParts& parts, const JobLaunch& launch, JobControl& control);
    ~JobRun();
    JobRun(const JobRun&) = delete;
    JobRun& operator=(const JobRun&) = delete;

    // Until every core has ended.
    void run();
    [[nodiscard]] const std::vector<Finding>& findings() const { return domain_->findings.all(); }
    [[nodiscard]] Domain::Traffic traffic() const { return domain_->traffic; }
    // The first launch that failed.
    [[nodiscard]] Status status() const;

private:
    struct Pe {
        DeviceConfig device;
        std::unique_ptr<detail::QueuedLaunch> job;
        std::unique_ptr<detail::RunningLaunch> run;
    };

    void add_pe(JobParts& parts, const JobLaunch& launch, int pe);
    // Called when no core can run any more.
    void deadlock();
    // Of the waits with limits of their own, the shortest one times out. Returns false when there is none.
    bool time_out_wait();
    void on_deadline();
    // Ends a run that repeats others and does not end.
    void abandon();
    // Fails all launches with H17, for this reason and with every core that has not ended.
    void fail_all(const std::string& why);
    // For the picture of the failure.
    void record_waiting(const detail::CoreContext& core);
    // The core to blame: one that waits for a word, or polls one.
    [[nodiscard]] const detail::CoreContext* first_waiting();
    [[nodiscard]] std::string describe_word(const void* address, std::uint64_t value) const;
    [[nodiscard]] std::string describe(const detail::CoreContext& core) const;

    JobControl& control_;
    std::shared_ptr<Domain> domain_;
    std::vector<Pe> pes_;
    std::vector<std::unique_ptr<detail::CoreSet>>& cores_;
    std::unique_ptr<Watchdog::Launch> watched_;
    bool abandoned_ = false;
};

}  // namespace npushmem::npu::check
