// Signals to the launcher reach every PE and what it has started.
#include <gmock/gmock.h>

#include <csignal>

#include "tests/integration/run/job_under_test.hpp"

namespace npushmem::run {
namespace {

using ::testing::HasSubstr;
using ::testing::IsEmpty;

class Forwarded : public ::testing::TestWithParam<int> {};

TEST_P(Forwarded, ReachesEveryPeAndAHandledOneIsNoFailure) {
    const std::string number = std::to_string(GetParam());
    JobUnderTest job(helper_job({"-n", "3"}, {"expect=" + number, "report=ready", "await=" + number}));
    EXPECT_EQ(job.reports(3).size(), 3U);
    job.signal(GetParam());
    for (const auto& report : job.reports(3)) EXPECT_EQ(report.word, "signal-" + number);
    EXPECT_EQ(job.end(), 0);
    EXPECT_THAT(job.errors(), IsEmpty());
}

INSTANTIATE_TEST_SUITE_P(Signals, Forwarded, ::testing::Values(SIGINT, SIGTERM, SIGHUP, SIGQUIT, SIGUSR1, SIGUSR2));

TEST(Signals, ReachChildrenOfPes) {
    JobUnderTest job({"-n", "2", "sh", "-c",
                      std::string("trap : USR1; ") + RUN_TEST_PE + " expect=10 report=ready await=10 & wait; wait"});
    EXPECT_EQ(job.reports(2).size(), 2U);
    job.signal(SIGUSR1);
    for (const auto& report : job.reports(2)) EXPECT_EQ(report.word, "signal-10");
    EXPECT_EQ(job.end(), 0);
}

TEST(Signals, UnhandledInterruptionEndsTheJobWithItsStatus) {
    JobUnderTest job(helper_job({"-n", "3"}, {"report=ready", "pause"}));
    EXPECT_EQ(job.reports(3).size(), 3U);
    job.signal(SIGINT);
    EXPECT_EQ(job.end(), 128 + SIGINT);
    EXPECT_THAT(job.errors(), HasSubstr("SIGINT"));
}

TEST(Signals, SecondInterruptionKills) {
    JobUnderTest job(
        helper_job({"-n", "2"}, {"ignore=15", "expect=2", "child=group", "report=ready", "await=2", "pause"}));
    EXPECT_EQ(job.reports(4).size(), 4U);
    job.signal(SIGINT);
    EXPECT_EQ(job.reports(2)[0].word, "signal-2");
    job.signal(SIGTERM);
    EXPECT_EQ(job.end(), 128 + SIGTERM);
    EXPECT_THAT(job.errors(), HasSubstr("SIGTERM again"));
}

TEST(Signals, StopStopsAllAndContinueContinuesThem) {
    JobUnderTest job(helper_job({"-n", "2"}, {"expect=10", "report=ready", "await=10"}));
    const auto pids = pids_by_pe(job.reports(2));
    job.signal(SIGTSTP);
    job.wait_until_stopped();
    for (const int pid : pids) EXPECT_TRUE(wait_for_state(pid, 'T'));
    job.signal(SIGCONT);
    job.signal(SIGUSR1);
    for (const auto& report : job.reports(2)) EXPECT_EQ(report.word, "signal-10");
    EXPECT_EQ(job.end(), 0);
}

}  // namespace
}  // namespace npushmem::run
