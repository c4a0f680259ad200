// SPDX-License-Identifier: BSD-3-Clause
// Signals to the launcher reach every PE and what it has started.
#include <gmock/gmock.h>

#include <csignal>

#include "core/tools/run/exit_record.hpp"
#include "tests/integration/run/job_under_test.hpp"

namespace npushmem::run {
namespace {

using ::testing::HasSubstr;
using ::testing::IsEmpty;

using Options = std::vector<std::string>;

// On this host, and on two that are this one: the remote shell takes the host's name for that of a variable to unset.
const Options here{"-n", "3"};
const Options on_hosts{"-n", "3", "--hosts", "a,b", "--rsh", "env -u"};

class Forwarded : public ::testing::TestWithParam<std::tuple<int, Options>> {
protected:
    [[nodiscard]] static int number() { return std::get<int>(GetParam()); }
    [[nodiscard]] static Options options() { return std::get<Options>(GetParam()); }
};

TEST_P(Forwarded, ReachesEveryPeAndAHandledOneIsNoFailure) {
    const std::string text = std::to_string(number());
    JobUnderTest job(helper_job(options(), {"expect=" + text, "report=ready", "await=" + text}));
    EXPECT_EQ(job.reports(3).size(), 3U);
    job.signal(number());
    for (const auto& report : job.reports(3)) EXPECT_EQ(report.word, "signal-" + text);
    EXPECT_EQ(job.end(), 0);
    EXPECT_THAT(job.errors(), IsEmpty());
}

INSTANTIATE_TEST_SUITE_P(Signals, Forwarded,
                         ::testing::Combine(::testing::Values(SIGINT, SIGTERM, SIGHUP, SIGQUIT, SIGUSR1, SIGUSR2),
                                            ::testing::Values(here, on_hosts)),
                         [](const auto& test) {
                             return signal_name(std::get<int>(test.param)) +
                                    (std::get<Options>(test.param) == here ? "" : "OnHosts");
                         });

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

TEST(Signals, SecondInterruptionKillsOnAllHosts) {
    JobUnderTest job(
        helper_job(on_hosts, {"ignore=15", "expect=2", "child=group", "report=ready", "await=2", "pause"}));
    EXPECT_EQ(job.reports(6).size(), 6U);
    job.signal(SIGINT);
    EXPECT_EQ(job.reports(3)[0].word, "signal-2");
    job.signal(SIGTERM);
    EXPECT_EQ(job.end(), 128 + SIGTERM);
    EXPECT_THAT(job.errors(), HasSubstr("SIGTERM again: killing the 2 running host agents"));
}

TEST(Signals, UnhandledInterruptionOnHostsEndsTheJobWithItsStatus) {
    JobUnderTest job(helper_job(on_hosts, {"report=ready", "pause"}));
    EXPECT_EQ(job.reports(3).size(), 3U);
    job.signal(SIGINT);
    EXPECT_EQ(job.end(), 128 + SIGINT);
    EXPECT_THAT(job.errors(), HasSubstr("SIGINT"));
}

class Stopped : public ::testing::TestWithParam<Options> {};
INSTANTIATE_TEST_SUITE_P(Signals, Stopped, ::testing::Values(here, on_hosts));

TEST_P(Stopped, StopStopsAllAndContinueContinuesThem) {
    JobUnderTest job(helper_job(GetParam(), {"expect=10", "report=ready", "await=10"}));
    const auto pids = pids_by_pe(job.reports(3));
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
