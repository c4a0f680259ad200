// SPDX-License-Identifier: BSD-3-Clause
// npushmem-run --npu-check=explore: every schedule of the kernels of a job's processes.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <csignal>
#include <string>

#include "tests/integration/run/job_under_test.hpp"

namespace npushmem::api_test {
namespace {

using testing::ContainsRegex;
using testing::HasSubstr;
using testing::Not;

struct ExploredJob {
    int status;
    std::string output;
};

ExploredJob run_explored(const std::string& check, const char* name, const char* variant, const char* pes = "2") {
    run::JobSettings settings;
    settings.with_bootstrap = true;
    settings.environment = {"NPUSHMEM_SYMMETRIC_SIZE=16M", "NPUSHMEM_NPU_VECTOR_CORES=1"};
    run::JobUnderTest job({"-n", pes, "--npu-check=" + check, API_TEST_FOLDER "/api_checked_peers", name, variant},
                          settings);
    const int status = job.end();
    return {status, job.output() + job.errors()};
}

TEST(ExploredJobs, FindAMistakeThatOneScheduleShows) {
    const ExploredJob lazy = run_explored("lazy", "expected_order", "wrong");
    EXPECT_EQ(lazy.status, 0) << lazy.output;
    EXPECT_THAT(lazy.output, Not(HasSubstr("H17"))) << lazy.output;

    const ExploredJob explored = run_explored("explore", "expected_order", "wrong");
    EXPECT_NE(explored.status, 0);
    EXPECT_THAT(explored.output, HasSubstr("nobody can go on"));
    EXPECT_THAT(explored.output, ContainsRegex("PE 1 core 0 is at .*checked_peers.cpp:"));
    EXPECT_THAT(explored.output, HasSubstr("npushmem-run: checked mode found H17"));
    // The last write of the awaited word, by another process.
    EXPECT_THAT(explored.output, ContainsRegex("against signal_[a-z]+ on PE [02] core 0 .*checked_peers.cpp:"));

    const std::string mark = "--npu-check=replay:";
    const std::size_t at = explored.output.find(mark);
    ASSERT_NE(at, std::string::npos) << explored.output;
    const std::string trace =
        explored.output.substr(at + mark.size(), explored.output.find('\n', at) - at - mark.size());
    const ExploredJob replayed = run_explored("replay:" + trace, "expected_order", "wrong");
    EXPECT_NE(replayed.status, 0);
    EXPECT_THAT(replayed.output, HasSubstr("npushmem-run: checked mode found H17")) << replayed.output;
    EXPECT_THAT(replayed.output, HasSubstr("after 1 run of the job"));
}

TEST(ExploredJobs, CoverEveryScheduleOfACorrectKernel) {
    for (const char* name : {"expected_order", "one_barrier"}) {
        const ExploredJob right = run_explored("explore", name, "right");
        EXPECT_EQ(right.status, 0) << right.output;
        EXPECT_THAT(right.output, HasSubstr("no finding; explored all schedules")) << right.output;
        EXPECT_THAT(right.output, Not(HasSubstr("in this launch"))) << right.output;
    }
}

TEST(ExploredJobs, FindWhatTheRecordsOfAllPesShow) {
    const ExploredJob wrong = run_explored("explore", "halves", "wrong");
    EXPECT_NE(wrong.status, 0);
    EXPECT_THAT(wrong.output, HasSubstr("npushmem-run: checked mode found H9")) << wrong.output;
}

// A host that has not waited for its kernel may signal to it: its wait is no deadlock.
TEST(ExploredJobs, WaitForHostsBesideTheirKernels) {
    const ExploredJob right = run_explored("explore", "host_beside_kernels", "right");
    EXPECT_EQ(right.status, 0) << right.output;
    EXPECT_THAT(right.output, Not(HasSubstr("H17"))) << right.output;
}

// PE 0 may see PE 1's signal or not: each variant fails in one of the two cases.
TEST(ExploredJobs, InterleaveQueuedLaunchesAndGlobalVariables) {
    for (const char* name : {"queued_launch", "global_variable"}) {
        for (const char* variant : {"right", "wrong"}) {
            const ExploredJob job = run_explored("explore", name, variant);
            EXPECT_NE(job.status, 0) << name << " " << variant << "\n" << job.output;
            EXPECT_THAT(job.output, HasSubstr("the kernel threw: found"));
        }
    }
}

TEST(ExploredJobs, FailWithoutAStepOfAKernel) {
    run::JobSettings settings;
    settings.with_bootstrap = true;
    run::JobUnderTest job({"-n", "2", "--npu-check=explore", "/bin/true"}, settings);
    EXPECT_NE(job.end(), 0);
    EXPECT_THAT(job.errors(), HasSubstr("--npu-check=explore: no kernel took a step"));
    EXPECT_THAT(job.errors(), Not(HasSubstr("all schedules")));
}

TEST(ExploredJobs, RepeatARunByItsSeed) {
    for (const char* seed : {"random:1", "random:2", "random:3", "random:4"}) {
        const ExploredJob first = run_explored(seed, "expected_order", "wrong");
        const ExploredJob second = run_explored(seed, "expected_order", "wrong");
        EXPECT_EQ(first.status, second.status) << seed;
        const std::string mark = "--npu-check=";
        EXPECT_EQ(first.output.substr(first.output.find(mark)), second.output.substr(second.output.find(mark)));
    }
}

TEST(ExploredJobs, EndWhenAPeIsKilledInItsKernel) {
    const ExploredJob killed = run_explored("explore", "early_death", "wrong", "3");
    EXPECT_EQ(killed.status, 128 + SIGKILL) << killed.output;
    EXPECT_THAT(killed.output, ContainsRegex("PE 1 .*KILL")) << killed.output;
}

}  // namespace
}  // namespace npushmem::api_test
