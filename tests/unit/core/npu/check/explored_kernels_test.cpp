// SPDX-License-Identifier: BSD-3-Clause
// Exploration of kernels: the number of schedules, hazards that only some schedules show, and their replay.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <set>
#include <utility>

#include "npushmem/npu/checked_job.hpp"
#include "npushmem/npu/npu.hpp"
#include "npushmem/npu/virtual_time.hpp"

namespace npushmem::npu {
namespace {

using testing::HasSubstr;
using testing::Not;
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

// The write comes before or after each read up to the one at which the loop is recognised, or after very many.
TEST(ExploredCounts, APollOfOneWordNeedsAScheduleForEachRead) {
    const CheckReport report = explore(1, 2, [](Core& core, std::uint64_t* data) {
        if (core.index() == 0) return core.signal_set(data, 1);
        while (core.signal_fetch(data) != 1) core.yield();
    });
    EXPECT_TRUE(report.clean() && report.complete) << report.text();
    EXPECT_EQ(report.schedules - report.redundant, 11U) << report.text();
}

void fail_if(bool fails, const char* what) {
    if (fails) throw std::runtime_error(what);
}

// Reads the word up to `bound` times, and returns the number of reads that found 0.
std::uint64_t poll(Core& core, std::uint64_t* word, std::uint64_t bound) {
    for (std::uint64_t reads = 0; reads < bound; ++reads)
        if (core.signal_fetch(word) == 1) return reads;
    return bound;
}

std::uint64_t poll_by_load(Core& core, std::uint64_t* word, std::uint64_t bound) {
    for (std::uint64_t reads = 0; reads < bound; ++reads) {
        core.dcci(word);
        if (core.load(word) == 1) return reads;
    }
    return bound;
}

CheckReport explore_poll(std::uint64_t bound, std::uint64_t fails_at,
                         std::uint64_t (*by)(Core&, std::uint64_t*, std::uint64_t) = poll) {
    return explore(2, 1, [=](Core& core, std::uint64_t* data) {
        if (core.my_pe() == 1) return core.signal_set_on(data, 1, 0);
        fail_if(by(core, data, bound) == fails_at, "ended there");
    });
}

TEST(ExploredPolls, ALoopWithABoundEndsAtEveryReadAndAtItsBound) {
    for (std::uint64_t fails_at = 0; fails_at <= 6; ++fails_at) {
        SCOPED_TRACE(fails_at);
        EXPECT_THAT(explore_poll(6, fails_at).status.message(), HasSubstr("ended there"));
        EXPECT_THAT(explore_poll(6, fails_at, poll_by_load).status.message(), HasSubstr("ended there"));
    }
}

// Copies the word into UB for each poll.
std::uint64_t poll_by_copy(Core& core, std::uint64_t* word, std::uint64_t bound) {
    const auto seen = core.ub_alloc<std::uint64_t>(4);
    for (std::uint64_t reads = 0; reads < bound; ++reads) {
        core.data_copy(seen, gm(word, 4), 4);
        core.set_flag<Pipe::copy_in, Pipe::scalar>(0);
        core.wait_flag<Pipe::copy_in, Pipe::scalar>(0);
        if (seen.data()[0] == 1) return reads;
    }
    return bound;
}

TEST(ExploredPolls, ALoopThatCopiesWhatItPollsGivesUp) {
    for (const std::uint64_t bound : {3, 20, 100, 5000}) {
        SCOPED_TRACE(bound);
        EXPECT_THAT(explore_poll(bound, bound, poll_by_copy).status.message(), HasSubstr("ended there"));
        const CheckReport right = explore_poll(bound, bound + 1, poll_by_copy);
        EXPECT_TRUE(right.clean() && right.complete) << right.text();
    }
}

// The outer loop reads its word once between two inner loops, which give up.
TEST(ExploredPolls, ALoopAroundALoopThatGivesUpIsInterruptedBetween) {
    for (const std::uint64_t bound : {3, 10, 20, 100, 1000, 5000}) {
        SCOPED_TRACE(bound);
        const CheckReport report = explore(1, 2, [=](Core& core, std::uint64_t* data) {
            std::uint64_t* const stop = line(data, 1);
            if (core.index() == 1) {
                core.signal_set(data, 1);
                return core.signal_set(stop, 1);
            }
            for (int round = 0;; ++round) {
                fail_if(core.signal_fetch(stop) == 1 && round > 0, "stopped behind a loop that gave up");
                if (poll(core, data, bound) < bound) return;
            }
        });
        EXPECT_THAT(report.status.message(), HasSubstr("stopped behind a loop")) << report.text();
    }
}

// Others see something of each round, so the loop is not repeated at length.
TEST(ExploredPolls, ALoopThatIsNotExploredToItsEndIsNamed) {
    const CheckReport report = explore(1, 2, [](Core& core, std::uint64_t* data) {
        if (core.index() == 1) return core.signal_set(data, 1);
        for (int reads = 0; reads < 500 && core.signal_fetch(data) != 1; ++reads) core.fence();
    });
    EXPECT_TRUE(report.clean()) << report.text();
    EXPECT_FALSE(report.complete);
    EXPECT_THAT(report.coverage, HasSubstr("explored_kernels_test.cpp:"));
}

TEST(ExploredPolls, ALoopWithALargeBoundGivesUp) {
    for (const std::uint64_t bound : {100, 1000, 5000, 60000}) {
        SCOPED_TRACE(bound);
        EXPECT_THAT(explore_poll(bound, bound).status.message(), HasSubstr("ended there"));
        EXPECT_TRUE(explore_poll(bound, bound + 1).clean());
    }
}

// A loop without a bound sees the flag after one read, after some, or after very many.
TEST(ExploredPolls, ALoopWithoutABoundMayHaveReadOften) {
    for (const std::uint64_t slow : {1, 2, 3, 17, 18, 20, 1000}) {
        SCOPED_TRACE(slow);
        const CheckReport report = explore(1, 2, [&](Core& core, std::uint64_t* data) {
            if (core.index() == 1) {
                core.signal_set(data, 1);
                return core.signal_set(line(data, 1), 1);
            }
            std::uint64_t reads = 0;
            while (core.signal_fetch(data) != 1) ++reads;
            fail_if(reads >= slow && core.signal_fetch(line(data, 1)) == 0, "was slow and saw no data");
        });
        EXPECT_THAT(report.status.message(), HasSubstr("was slow and saw no data"));
    }
}

CheckReport explore_wake_up(std::uint64_t bound, bool reads_again, const char* schedule = "explore") {
    return explore(
        1, 2,
        [=](Core& core, std::uint64_t* data) {
            std::uint64_t* const waiter = line(data, 1);
            std::uint64_t* const wake = line(data, 2);
            if (core.index() == 1) {
                core.signal_set(data, 1);
                if (core.signal_fetch(waiter) == 1) core.signal_set(wake, 1);
                return;
            }
            if (poll(core, data, bound) < bound) return;
            core.signal_set(waiter, 1);
            if (reads_again && core.signal_fetch(data) == 1) return;
            core.signal_wait_until(wake, Compare::equal, 1);
        },
        schedule);
}

// The flag is set between the last poll and the registration of the waiter.
TEST(ExploredPolls, ALostWakeUpBehindALoopThatGivesUpIsFound) {
    for (const std::uint64_t bound : {1, 8, 32, 1000}) {
        SCOPED_TRACE(bound);
        const CheckReport report = explore_wake_up(bound, false);
        ASSERT_FALSE(report.findings.empty()) << report.text();
        EXPECT_EQ(report.findings.front().hazard, Hazard::deadlock);
        EXPECT_EQ(explore_wake_up(bound, false, report.schedule.c_str()).status.message(), report.status.message());
        const CheckReport right = explore_wake_up(bound, true);
        EXPECT_TRUE(right.clean() && right.complete) << right.text();
    }
}

CheckReport explore_timeout(bool signals, bool fails_in_time, const char* schedule = "explore") {
    return explore(
        2, 1,
        [=](Core& core, std::uint64_t* data) {
            if (core.my_pe() == 1) {
                if (signals) core.signal_set_on(data, 1, 0);
                return;
            }
            const auto seen = core.signal_wait_for(data, Compare::equal, 1, {std::chrono::hours(1), -1});
            fail_if(seen.ok() == fails_in_time, "ended so");
        },
        schedule);
}

TEST(ExploredTimeouts, AWaitWithALimitEndsInTimeAndTooLate) {
    EXPECT_THAT(explore_timeout(true, true).status.message(), HasSubstr("ended so"));
    EXPECT_THAT(explore_timeout(true, false).status.message(), HasSubstr("ended so"));
}

TEST(ExploredTimeouts, AWaitWithALimitIsNoDeadlock) {
    for (const char* schedule : {"lazy", "eager", "random:1", "explore"}) {
        EXPECT_TRUE(explore_timeout(false, true, schedule).clean()) << schedule;
        EXPECT_THAT(explore_timeout(false, false, schedule).status.message(), HasSubstr("ended so")) << schedule;
    }
}

// A pipe runs a copy while its core waits for a relay, reads x, and waits for the copy: the read may come before both
// writes, and the copy behind them.
TEST(ExploredOrder, AWaitForAPipeDoesNotOrderEarlierReadsOfItsCore) {
    for (const bool barrier : {false, true}) {
        std::set<std::pair<std::uint64_t, std::uint64_t>> seen;
        const CheckReport report = explore(1, 3, [&](Core& core, std::uint64_t* data) {
            std::uint64_t* const x = line(data, 0);
            std::uint64_t* const y = line(data, 1);
            std::uint64_t* const begun = line(data, 2);
            std::uint64_t* const relayed = line(data, 3);
            if (core.index() == 0) {
                core.signal_set(x, 1);
                return core.signal_set(y, 1);
            }
            if (core.index() == 2) {
                core.signal_wait_until(begun, Compare::equal, 1);
                return core.signal_set(relayed, 1);
            }
            const auto copied = core.ub_alloc<std::uint64_t>(4);
            core.data_copy(copied, gm(y, 4), 4);
            if (!barrier) core.set_flag<Pipe::copy_in, Pipe::scalar>(0);
            core.signal_set(begun, 1);
            core.signal_wait_until(relayed, Compare::equal, 1);
            const std::uint64_t read = core.signal_fetch(x);
            if (barrier)
                core.pipe_barrier<Pipe::all>();
            else
                core.wait_flag<Pipe::copy_in, Pipe::scalar>(0);
            seen.insert({read, copied.data()[0]});
        });
        EXPECT_TRUE(report.clean() && report.complete) << report.text();
        EXPECT_EQ(seen.size(), 4U) << (barrier ? "pipe_barrier" : "wait_flag");
    }
}

// The first kernel fails while a core waits in a loop, and while another one waits with a limit.
TEST(ExploredFailures, LeaveNothingToTheNextRunOfTheirCores) {
    CheckedJobConfig config{.pes = 1, .heap_bytes = 1 << 16, .schedule = Schedule::parse("explore").value()};
    config.device.blocks = 3;
    config.device.vector_cores = 1;
    const auto job = CheckedJob::create(config).value();
    auto* data = job->allocate<std::uint64_t>(256);
    const CheckReport wrong = job->run(3, [&](Core& core) {
        if (core.index() == 0)
            while (core.signal_fetch(data) != 1) {
            }
        if (core.index() == 1)
            static_cast<void>(core.signal_wait_for(data, Compare::equal, 1, {std::chrono::hours(1), -1}));
        core.atomic_fetch_add(line(data, 1), 1);
        throw std::runtime_error("first");
    });
    EXPECT_FALSE(wrong.clean());
    const CheckReport right = job->run(3, [&](Core& core) {
        for (int i = 0; core.index() == 2 && i < 2; ++i) core.atomic_fetch_add(line(data, 2), 1);
        core.core_barrier();
        fail_if(core.signal_fetch(line(data, 2)) % 2 != 0, "left the barrier early");
    });
    EXPECT_TRUE(right.clean() && right.complete) << right.text();
}

// A wait must not end by the clock, which no schedule controls.
TEST(ExploredTimeouts, TheLimitOfTheDeviceDoesNotEndWaits) {
    CheckedJobConfig config{.pes = 2, .heap_bytes = 1 << 16, .schedule = Schedule::parse("explore").value()};
    config.device.blocks = 1;
    config.device.vector_cores = 1;
    config.device.wait_timeout = std::chrono::nanoseconds(1);
    const auto job = CheckedJob::create(config).value();
    auto* data = job->allocate<std::uint64_t>(1024);
    const CheckReport report = job->run(1, [&](Core& core) {
        if (core.my_pe() == 0) {
            core.signal_wait_until(job->at(0, data), Compare::equal, 1, 1);
            return;
        }
        // Many steps: the runner looks at the clock.
        for (std::uint64_t i = 0; i < 5000; ++i)
            core.signal_set(job->at(1, line(data, 1 + static_cast<int>(i % 100))), i);
        core.signal_set_on(job->at(1, data), 1, 0);
    });
    EXPECT_TRUE(report.clean()) << report.text();
}

// The kernel depends on the number of the run.
TEST(ExploredFailures, StayWhenAnotherRunOfTheScheduleIsClean) {
    int runs = 0;
    const CheckReport report = explore(2, 1, [&runs](Core& core, std::uint64_t* data) {
        if (core.my_pe() == 1) return core.signal_set_on(data, 1, 0);
        ++runs;
        static_cast<void>(core.signal_fetch(data));
        if (runs == 2) core.signal_wait_until(line(data, 1), Compare::equal, 1);
    });
    EXPECT_FALSE(report.clean()) << report.text();
    EXPECT_FALSE(report.repeated);
    EXPECT_GT(report.minimised_by, 0U);
    EXPECT_THAT(report.text(), HasSubstr("H17"));
    EXPECT_THAT(report.text(), HasSubstr("did not fail in this way"));
    EXPECT_THAT(report.text(), Not(HasSubstr("all schedules")));
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

TEST(ExploredBudget, AFindingOrABudgetOfNothingIsNotComplete) {
    EXPECT_FALSE(explore(1, 3, enter_once).complete);
    EXPECT_TRUE(explore(1, 3, enter_once_atomically).complete);
    Schedule nothing{.kind = Schedule::Kind::explore};
    nothing.max_schedules = 0;
    const CheckReport report = explore(1, 3, enter_once, nothing);
    EXPECT_EQ(report.status.code(), Code::config) << report.text();
    EXPECT_FALSE(report.complete);
}

// Without checks, or with the hooks of a launch, there is nothing to explore.
TEST(ExploredBudget, KernelsWithoutTheCheckerRunOnce) {
    for (const char* schedule : {"explore", "replay:"}) {
        for (const bool check : {false, true}) {
            CheckedJobConfig config{.pes = 2, .heap_bytes = 4096, .schedule = Schedule::parse(schedule).value()};
            config.check = check;
            config.device.vector_cores = 1;
            const auto job = CheckedJob::create(config).value();
            auto* data = job->allocate<std::uint64_t>(8);
            VirtualTime time;
            LaunchConfig launch(1);
            if (check) launch.hooks = time.hooks();
            const CheckReport report =
                job->run(launch, [&](Core& core) { core.signal_add_on(job->at(core.my_pe(), data), 1, 0); });
            EXPECT_TRUE(report.clean()) << report.text();
            EXPECT_EQ(report.schedules, 1U);
            EXPECT_EQ(*data, 2U);
        }
    }
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
    EXPECT_EQ(report.minimised_by, 0U);
}

// With few deviations, too.
TEST(ExploredBudget, AKernelWithOtherThreadsInAnotherRunIsReported) {
    int runs = 0;
    const CheckReport report = explore(
        1, 2,
        [&](Core& core, std::uint64_t* data) {
            if (core.index() == 0 && ++runs > 1) return;
            core.atomic_fetch_add(data, 1);
        },
        "explore:2");
    EXPECT_EQ(report.status.code(), Code::state) << report.text();
    EXPECT_FALSE(report.complete);
}

}  // namespace
}  // namespace npushmem::npu
