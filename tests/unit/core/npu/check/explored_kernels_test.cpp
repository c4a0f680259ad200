// SPDX-License-Identifier: BSD-3-Clause
// Exploration of kernels: the number of schedules, hazards that only some schedules show, and their replay.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "npushmem/npu/checked_job.hpp"
#include "npushmem/npu/npu.hpp"

namespace npushmem::npu {
namespace {

using testing::HasSubstr;
using testing::StartsWith;
using Kernel = std::function<void(Core&, std::uint64_t* data)>;

// Words of different lines.
std::uint64_t* line(std::uint64_t* data, int number) { return data + number * 8; }

CheckReport explore(int pes, int cores, const Kernel& kernel, const Schedule& schedule) {
    CheckedJobConfig config{.pes = pes, .heap_bytes = 1 << 16, .schedule = schedule};
    config.device.blocks = cores;
    config.device.vector_cores = 1;
    config.device.stack_bytes = 64 * 1024;
    const auto job = CheckedJob::create(config).value();
    auto* data = job->allocate<std::uint64_t>(256);
    return job->run(cores, [&](Core& core) { kernel(core, job->at(core.my_pe(), data)); });
}

CheckReport explore(int pes, int cores, const Kernel& kernel, const char* schedule = "explore") {
    return explore(pes, cores, kernel, Schedule::parse(schedule).value());
}

void expect_all(const CheckReport& report, std::uint64_t schedules) {
    EXPECT_TRUE(report.clean() && report.complete) << report.text();
    EXPECT_THAT(report.text(), HasSubstr("explored all schedules: "));
    EXPECT_EQ(report.schedules - report.redundant, schedules) << report.text();
}

TEST(ExploredCounts, CoresThatShareNothingNeedOneSchedule) {
    expect_all(explore(1, 4,
                       [](Core& core, std::uint64_t* data) {
                           core.store(line(data, core.index()), 1);
                           core.dcci(line(data, core.index()), 8);
                       }),
               1);
}

TEST(ExploredCounts, AtomicsOfOneWordNeedEveryOrder) {
    expect_all(explore(1, 3, [](Core& core, std::uint64_t* data) { core.atomic_fetch_add(data, 1); }), 6);
    expect_all(explore(1, 4, [](Core& core, std::uint64_t* data) { core.atomic_fetch_add(data, 1); }), 24);
}

TEST(ExploredCounts, AnOrderedHandOverNeedsOneSchedule) {
    expect_all(explore(2, 1,
                       [](Core& core, std::uint64_t* data) {
                           if (core.my_pe() == 0) return core.put_signal(line(data, 1), line(data, 2), 8, data, 1, 1);
                           core.signal_wait_until(data, Compare::equal, 1, 0);
                           static_cast<void>(core.load(line(data, 1)));
                       }),
               1);
}

// Signals without a fence arrive in any order; the last one stays.
TEST(ExploredCounts, UnfencedSignalsToOneWordArriveInEveryOrder) {
    const auto send = [](bool fenced) {
        return [fenced](Core& core, std::uint64_t* data) {
            for (std::uint64_t value = 1; core.my_pe() == 0 && value <= 3; ++value) {
                core.signal_set_on(data, value, 1);
                if (fenced) core.fence();
            }
        };
    };
    expect_all(explore(2, 1, send(false)), 6);
    expect_all(explore(2, 1, send(true)), 1);
}

// What a loop reads again without effect needs no schedules.
TEST(ExploredCounts, APollOfOneWordIsReadBeforeOrAfterTheWrite) {
    const CheckReport report = explore(1, 2, [](Core& core, std::uint64_t* data) {
        if (core.index() == 0) return core.signal_set(data, 1);
        while (core.signal_fetch(data) != 1) core.yield();
    });
    EXPECT_TRUE(report.clean() && report.complete) << report.text();
    EXPECT_LE(report.schedules, 4U) << report.text();
}

// A check and a store that is not one atomic step: both cores may enter.
void enter_once(Core& core, std::uint64_t* data) {
    if (core.signal_fetch(data) != 0) return;
    core.signal_set(data, 1);
    if (core.atomic_fetch_add(line(data, 1), 1) != 0) throw std::runtime_error("both cores have entered");
}

void enter_once_atomically(Core& core, std::uint64_t* data) {
    if (core.atomic_compare_swap(data, 0, 1) != 0) return;
    if (core.atomic_fetch_add(line(data, 1), 1) != 0) throw std::runtime_error("both cores have entered");
}

TEST(ExploredFailures, ACheckThatIsNotAtomicIsFoundAndMinimised) {
    const CheckReport report = explore(1, 3, enter_once);
    EXPECT_THAT(report.status.message(), HasSubstr("both cores have entered")) << report.text();
    EXPECT_EQ(report.deviations, 1U) << report.text();
    EXPECT_THAT(report.schedule, StartsWith("replay:"));
    EXPECT_TRUE(explore(1, 3, enter_once_atomically).clean());
}

TEST(ExploredFailures, TheScheduleOfAReportRepeatsTheFailure) {
    const CheckReport found = explore(1, 3, enter_once);
    for (int i = 0; i < 2; ++i) {
        const CheckReport again = explore(1, 3, enter_once, found.schedule.c_str());
        EXPECT_EQ(again.status.message(), found.status.message());
        EXPECT_EQ(again.schedule, found.schedule);
        EXPECT_EQ(again.schedules, 1U);
    }
    EXPECT_TRUE(explore(1, 3, enter_once, "replay:").clean());
}

// The wait for exactly 1 misses it in some schedules, in which the writer goes on to 2.
TEST(ExploredFailures, AValueThatAWaitMayMissIsADeadlock) {
    const CheckReport report = explore(1, 2, [](Core& core, std::uint64_t* data) {
        if (core.index() == 0) {
            core.signal_set(data, 1);
            return core.signal_set(data, 2);
        }
        core.signal_wait_until(data, Compare::equal, 1);
    });
    ASSERT_FALSE(report.findings.empty()) << report.text();
    EXPECT_EQ(report.findings.front().hazard, Hazard::deadlock);
    EXPECT_THAT(report.text(), HasSubstr("waits at "));
}

TEST(ExploredBudget, ReportsWhatFewDeviationsCover) {
    Schedule schedule = Schedule::parse("explore").value();
    schedule.max_schedules = 4000;
    const CheckReport report = explore(
        1, 5,
        [](Core& core, std::uint64_t* data) {
            core.atomic_fetch_add(data, 1);
            core.atomic_fetch_add(data, 1);
        },
        schedule);
    EXPECT_TRUE(report.clean()) << report.text();
    EXPECT_FALSE(report.complete);
    EXPECT_THAT(report.coverage, HasSubstr("all schedules with at most 1 deviation and others"));
    EXPECT_EQ(report.schedules, 4000U);
}

TEST(ExploredBudget, StepsAreLimited) {
    Schedule schedule = Schedule::parse("explore").value();
    schedule.max_steps = 1000;
    const CheckReport report = explore(
        1, 2,
        [](Core& core, std::uint64_t* data) {
            for (std::uint64_t i = 0; core.signal_fetch(data) == 0; ++i) core.signal_set(line(data, 1), i);
        },
        schedule);
    EXPECT_THAT(report.text(), HasSubstr("the launch has not ended within 1000 steps"));
    EXPECT_THAT(report.text(), HasSubstr("explored_kernels_test.cpp:"));
}

TEST(ExploredBudget, AKernelThatDependsOnMoreThanTheScheduleIsReported) {
    int runs = 0;
    const CheckReport report = explore(1, 2, [&](Core& core, std::uint64_t* data) {
        if (core.index() == 0) core.signal_set(line(data, ++runs), 1);
        core.signal_set(data, 1);
    });
    EXPECT_EQ(report.status.code(), Code::state) << report.text();
}

}  // namespace
}  // namespace npushmem::npu
