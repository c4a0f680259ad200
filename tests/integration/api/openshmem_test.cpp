// What is particular to programs that use the names of OpenSHMEM: their reports, and the standard's variables.
#include <gmock/gmock.h>

#include "tests/integration/run/job_under_test.hpp"

namespace npushmem::api_test {
namespace {

using ::testing::AllOf;
using ::testing::HasSubstr;
using ::testing::IsEmpty;
using ::testing::Not;

struct Ended {
    int status;
    std::string output;
    std::string errors;
};

Ended run_mistakes(std::vector<std::string> environment, std::vector<std::string> arguments = {}, int npes = 2) {
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
    for (const char* transports : {"self,p2p", "self,nomap(p2p)"}) {
        const Ended job = run_mistakes({std::string("NPUSHMEM_TRANSPORTS=") + transports});
        EXPECT_EQ(job.status, 0) << job.errors;
        EXPECT_THAT(job.output, IsEmpty());
        EXPECT_THAT(job.errors, AllOf(HasSubstr("shmem_long_atomic_fetch_add: PE 2"), Not(HasSubstr("npushmem_"))));
    }
}

TEST(OpenshmemPrograms, TakeTheStandardsVariables) {
    const Ended job = run_mistakes({"SHMEM_SYMMETRIC_SIZE=3.1m", "SHMEM_INFO=1", "SMA_VERSION="}, {"size"});
    EXPECT_EQ(job.status, 0) << job.errors;
    EXPECT_THAT(job.output, HasSubstr("capacity="));
    const auto capacity = std::stoull(job.output.substr(job.output.find('=') + 1));
    EXPECT_GE(capacity, 3250586U);
    EXPECT_LT(capacity, 8U << 20);
    EXPECT_THAT(job.errors, AllOf(HasSubstr("SHMEM_SYMMETRIC_SIZE  bytes of each PE's symmetric heap"),
                                  HasSubstr("SHMEM_SYMMETRIC_SIZE=3.1m stands for NPUSHMEM_SYMMETRIC_SIZE=3250586"),
                                  HasSubstr("SMA_VERSION= stands for")));
}

TEST(OpenshmemPrograms, AreOverruledByOurVariables) {
    const Ended job =
        run_mistakes({"SHMEM_SYMMETRIC_SIZE=32M", "NPUSHMEM_SYMMETRIC_SIZE=1M", "NPUSHMEM_INFO=1"}, {"size"});
    EXPECT_EQ(job.status, 0) << job.errors;
    EXPECT_LT(std::stoull(job.output.substr(job.output.find('=') + 1)), 8U << 20);
    EXPECT_THAT(job.errors, AllOf(HasSubstr("SHMEM_SYMMETRIC_SIZE=32M is overruled by NPUSHMEM_SYMMETRIC_SIZE=1M"),
                                  Not(HasSubstr("deprecated: SMA_"))));
}

TEST(OpenshmemPrograms, DebugAndVersionAreSwitchedOnByAnyValue) {
    const Ended job = run_mistakes({"SHMEM_DEBUG=0", "SHMEM_VERSION=0"}, {"size"}, 1);
    EXPECT_EQ(job.status, 0) << job.errors;
    EXPECT_THAT(job.errors, AllOf(HasSubstr("npushmem "), HasSubstr("world team: done")));
}

TEST(OpenshmemPrograms, AreNotHeldUpAtTheEndWhenTheyEndBadly) {
    const Ended job = run_mistakes({}, {"leave"}, 3);
    EXPECT_EQ(job.status, 3) << job.errors;
    EXPECT_THAT(job.errors, HasSubstr("PE 2"));
}

TEST(OpenshmemPrograms, HaveChildrenThatEndAlone) {
    const Ended job = run_mistakes({}, {"fork"}, 3);
    EXPECT_EQ(job.status, 0) << job.errors;
    EXPECT_THAT(job.errors, IsEmpty());
}

TEST(OpenshmemPrograms, EndWhenTheSizeIsNone) {
    const Ended job = run_mistakes({"SHMEM_SYMMETRIC_SIZE=20q"}, {"size"}, 1);
    EXPECT_NE(job.status, 0);
    EXPECT_THAT(job.output, IsEmpty());
    EXPECT_THAT(job.errors, AllOf(HasSubstr("shmem_init"), HasSubstr("SHMEM_SYMMETRIC_SIZE='20q'")));
}

}  // namespace
}  // namespace npushmem::api_test
