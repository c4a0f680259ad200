// SPDX-License-Identifier: BSD-3-Clause
// Programs that use the names of OpenSHMEM: their reports, and the standard's variables.
#include <gmock/gmock.h>

#include "tests/integration/api/transport_selections.hpp"
#include "tests/integration/run/job_under_test.hpp"

namespace npushmem::api_test {
namespace {

using ::testing::AllOf;
using ::testing::HasSubstr;
using ::testing::IsEmpty;
using ::testing::Not;

struct JobResult {
    int status;
    std::string output;
    std::string errors;
};

JobResult run_mistakes(std::vector<std::string> environment, std::vector<std::string> arguments = {}, int npes = 2) {
    run::JobSettings settings;
    settings.with_bootstrap = true;
    settings.environment = std::move(environment);
    std::vector<std::string> command = {"-n", std::to_string(npes),
                                        std::string(API_TEST_FOLDER) + "/api_openshmem_mistakes"};
    command.insert(command.end(), arguments.begin(), arguments.end());
    run::JobUnderTest job(command, settings);
    const int status = job.end();
    return {status, job.output(), job.errors()};
}

TEST(OpenshmemPrograms, GetReportsInTheirOwnNames) {
    std::vector<std::string> selections = unmapped_self_selections();
    selections.insert(selections.end(), {"self,p2p", "self,nomap(p2p)"});
    for (const std::string& transports : selections) {
        const JobResult job = run_mistakes({"NPUSHMEM_TRANSPORTS=" + transports});
        EXPECT_EQ(job.status, 0) << job.errors;
        EXPECT_THAT(job.output, IsEmpty());
        EXPECT_THAT(job.errors, AllOf(HasSubstr("shmem_long_atomic_fetch_add: PE 2"), Not(HasSubstr("npushmem_"))));
    }
}

TEST(OpenshmemPrograms, TakeTheStandardsVariables) {
    const JobResult job = run_mistakes({"SHMEM_SYMMETRIC_SIZE=3.1m", "SHMEM_INFO=1", "SMA_VERSION="}, {"size"});
    EXPECT_EQ(job.status, 0) << job.errors;
    EXPECT_THAT(job.output, HasSubstr("capacity="));
    const auto capacity = std::stoull(job.output.substr(job.output.find('=') + 1));
    EXPECT_GE(capacity, 3250586U);
    EXPECT_LT(capacity, 8U << 20);
    EXPECT_THAT(job.errors, AllOf(HasSubstr("SHMEM_SYMMETRIC_SIZE  bytes of each PE's symmetric heap"),
                                  HasSubstr("SHMEM_SYMMETRIC_SIZE=3.1m sets NPUSHMEM_SYMMETRIC_SIZE=3250586"),
                                  HasSubstr("SMA_VERSION= sets")));
}

TEST(OpenshmemPrograms, AreOverruledByOurVariables) {
    const JobResult job =
        run_mistakes({"SHMEM_SYMMETRIC_SIZE=32M", "NPUSHMEM_SYMMETRIC_SIZE=1M", "NPUSHMEM_INFO=1"}, {"size"});
    EXPECT_EQ(job.status, 0) << job.errors;
    EXPECT_LT(std::stoull(job.output.substr(job.output.find('=') + 1)), 8U << 20);
    EXPECT_THAT(job.errors, AllOf(HasSubstr("SHMEM_SYMMETRIC_SIZE=32M is overruled by NPUSHMEM_SYMMETRIC_SIZE=1M"),
                                  Not(HasSubstr("deprecated: SMA_"))));
}

TEST(OpenshmemPrograms, DebugAndVersionAreSwitchedOnByAnyValue) {
    const JobResult job = run_mistakes({"SHMEM_DEBUG=0", "SHMEM_VERSION=0"}, {"size"}, 1);
    EXPECT_EQ(job.status, 0) << job.errors;
    EXPECT_THAT(job.errors, AllOf(HasSubstr("npushmem "), HasSubstr("world team: done")));
}

TEST(OpenshmemPrograms, AreNotHeldUpAtTheEndWhenTheyEndBadly) {
    const JobResult job = run_mistakes({}, {"leave", "3"}, 3);
    EXPECT_EQ(job.status, 3) << job.errors;
    EXPECT_THAT(job.errors, HasSubstr("PE 2"));
}

// A PE that does not find it dead would report a timeout.
TEST(OpenshmemPrograms, ReportAnExitedPeOverEveryTransport) {
    for (const char* transports : {"self,p2p", "self,nomap(p2p)", "nomap(p2p)", "trace(p2p)", "fault(p2p)", "hccs",
                                   "nomap(hccs)", "trace(nomap(p2p))"}) {
        const JobResult job =
            run_mistakes({std::string("NPUSHMEM_TRANSPORTS=") + transports, "NPUSHMEM_TIMEOUT=30s"}, {"leave", "0"}, 3);
        EXPECT_NE(job.status, 0) << transports;
        EXPECT_THAT(job.errors, AllOf(HasSubstr("PE 2 has died or finalized"), Not(HasSubstr(": timed out"))))
            << transports;
    }
}

// A finalize would wait for locks that its own thread holds, and for a barrier that this thread has not left.
TEST(OpenshmemPrograms, ExitInAHandlerThatInterruptsACall) {
    for (const char* transports : {"self,p2p", "self,nomap(p2p)", "hccs"}) {
        const JobResult job = run_mistakes({std::string("NPUSHMEM_TRANSPORTS=") + transports}, {"interrupt"}, 3);
        EXPECT_NE(job.status, 0) << transports;
        EXPECT_THAT(job.errors, AllOf(HasSubstr("PE 2 has died or finalized"), Not(HasSubstr("shmem_finalize"))))
            << transports;
    }
}

TEST(OpenshmemPrograms, EndTheJobByTheStandardsName) {
    const JobResult job = run_mistakes({}, {"end"}, 3);
    EXPECT_EQ(job.status, 5) << job.errors;
    EXPECT_THAT(job.errors,
                AllOf(HasSubstr("PE 2 ended the job by shmem_global_exit(5)"), Not(HasSubstr("npushmem_"))));
}

TEST(OpenshmemPrograms, HaveChildrenThatEndAlone) {
    const JobResult job = run_mistakes({}, {"fork"}, 3);
    EXPECT_EQ(job.status, 0) << job.errors;
    EXPECT_THAT(job.errors, IsEmpty());
}

TEST(OpenshmemPrograms, EndWhenTheSizeIsNone) {
    const JobResult job = run_mistakes({"SHMEM_SYMMETRIC_SIZE=20q"}, {"size"}, 1);
    EXPECT_NE(job.status, 0);
    EXPECT_THAT(job.output, IsEmpty());
    EXPECT_THAT(job.errors, AllOf(HasSubstr("shmem_init"), HasSubstr("SHMEM_SYMMETRIC_SIZE='20q'")));
}

}  // namespace
}  // namespace npushmem::api_test
