// SPDX-License-Identifier: BSD-3-Clause
// Reports whether variables are symmetric, and if not, why. families_test.cpp tests operations on them.
#include <gmock/gmock.h>

#include <string>
#include <vector>

#include "tests/integration/run/job_under_test.hpp"

namespace npushmem::api_test {
namespace {

using ::testing::AllOf;
using ::testing::HasSubstr;

run::JobSettings settings(std::vector<std::string> environment) {
    run::JobSettings made;
    made.with_bootstrap = true;
    made.environment = std::move(environment);
    made.environment.emplace_back("NPUSHMEM_SYMMETRIC_SIZE=1M");
    return made;
}

constexpr const char* variables = API_TEST_FOLDER "/api_variables";
constexpr const char* elsewhere = API_TEST_FOLDER "/api_variables_fixed";

TEST(StaticVariables, AreReportedAtStart) {
    run::JobUnderTest job({"-n", "2", variables, "reached"}, settings({"NPUSHMEM_INFO=1"}));
    EXPECT_EQ(job.end(), 0) << job.errors();
    EXPECT_THAT(job.errors(), AllOf(HasSubstr("static data: "), HasSubstr("of the executable are symmetric\n")));
}

TEST(StaticVariables, AreLeftAloneWhenSwitchedOff) {
    run::JobUnderTest job({"-n", "2", variables, "refused"}, settings({"NPUSHMEM_INFO=1", "NPUSHMEM_STATIC_DATA=0"}));
    EXPECT_EQ(job.end(), 0) << job.errors();
    EXPECT_THAT(job.errors(),
                AllOf(HasSubstr("static data: not symmetric: NPUSHMEM_STATIC_DATA is 0"),
                      HasSubstr("npushmem_long_p: dest"), HasSubstr("belongs to the executable"),
                      HasSubstr("but not the executable's variables, because NPUSHMEM_STATIC_DATA is 0")));
}

// The shell selects the program of each PE.
std::vector<std::string> by_shell(const std::string& script) { return {"-n", "2", "sh", "-c", script}; }

TEST(StaticVariables, OfOnePeAreNotReachedWhenSwitchedOffThere) {
    run::JobUnderTest job(
        by_shell(std::string("test $NPUSHMEM_PE = 1 && export NPUSHMEM_STATIC_DATA=0; exec ") + variables + " refused"),
        settings({"NPUSHMEM_INFO=1"}));
    EXPECT_EQ(job.end(), 0) << job.errors();
    EXPECT_THAT(job.errors(), AllOf(HasSubstr("but not with PE 1: NPUSHMEM_STATIC_DATA is 0"),
                                    HasSubstr("those of PE 1 are not symmetric: NPUSHMEM_STATIC_DATA is 0")));
}

TEST(StaticVariables, OfAnotherExecutableAreRefused) {
    run::JobUnderTest job(by_shell(std::string("test $NPUSHMEM_PE = 0 && exec ") + variables + " refused; exec " +
                                   elsewhere + " refused"),
                          settings({"NPUSHMEM_INFO=1"}));
    EXPECT_EQ(job.end(), 0) << job.errors();
    EXPECT_THAT(job.errors(), AllOf(HasSubstr("but not with PE 1: another executable"),
                                    HasSubstr("PE 1 runs another executable (build "), HasSubstr("npushmem_malloc")));
}

// Like hosts without shared memory: the transport does not map the variables.
TEST(StaticVariables, AreReachedOnHostsThatDoNotShareMemory) {
    run::JobUnderTest job(
        {"-n", "4", "--nodes", "2", variables, "reached"},
        // Concurrent tests create other interfaces; on a busy machine a silent peer is not lost.
        settings({"NPUSHMEM_REMOTE_TRANSPORT=tcp", "NPUSHMEM_TCP_IFNAME=lo", "NPUSHMEM_TCP_PEER_TIMEOUT=0"}));
    EXPECT_EQ(job.end(), 0) << job.errors();
}

}  // namespace
}  // namespace npushmem::api_test
