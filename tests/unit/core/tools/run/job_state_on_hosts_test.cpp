// SPDX-License-Identifier: BSD-3-Clause
// The rules of JobState for a job on several hosts: the launcher's, and those of a host agent.
#include <gmock/gmock.h>

#include <csignal>

#include "core/tools/run/exit_record.hpp"
#include "core/tools/run/job_state.hpp"
#include "core/tools/run/remote_launch.hpp"
#include "tests/unit/core/tools/run/running_job.hpp"

namespace npushmem::run {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;

TEST(CauseSearch, StartsItsTimeoutWhenEveryHostHasReported) {
    CauseSearch search(2);
    search.exits_flushed_on_host(0, start);
    EXPECT_TRUE(search.add({0, cannot_go_on, {}, {}}));
    EXPECT_FALSE(search.add({1, {2, 1, true}, {}, {}}));
    search.exits_flushed_on_host(0, start);
    EXPECT_FALSE(search.deadline().has_value());
    search.exits_flushed_on_host(1, start);
    EXPECT_EQ(search.deadline(), start + CauseSearch::timeout);
    search.exits_flushed_on_host(1, start + CauseSearch::timeout);
    EXPECT_EQ(search.deadline(), start + CauseSearch::timeout) << "a second report changes nothing";
    EXPECT_TRUE(search.contains(1));
    EXPECT_FALSE(search.contains(2));
}

TEST(CauseSearch, PrefersAnExitToAPeThatCannotGoOn) {
    CauseSearch search(1);
    (void)search.add({0, cannot_go_on, {}, {}});
    EXPECT_EQ(search.likely_cause().process, 0);
    (void)search.add({1, {}, {6, "PE 5 exited"}, "host agent 1"});
    EXPECT_EQ(search.likely_cause().process, 1);
    search.exits_flushed(start);
    EXPECT_EQ(search.deadline(), start) << "an exit is named at once";
}

TEST(CauseSearch, HasNoDeadlineOnceTheJobEnds) {
    CauseSearch search(1);
    (void)search.add({0, cannot_go_on, {}, {}});
    search.wait_until(start);
    search.stop();
    search.exits_flushed(start);
    EXPECT_FALSE(search.deadline().has_value());
}

JobState running_hosts(int hosts, std::optional<std::chrono::milliseconds> limit = std::nullopt) {
    return running_job(hosts, limit, Scope::agents);
}

// The host of the PE that was killed reports later than the host of a PE that failed because of it.
TEST(JobState, PrefersAKilledPeToAnEarlierReportOfAnotherHost) {
    JobState state = running_hosts(3);
    const Commands commands = state.exit_requested_on_host(cannot_go_on, 0, start);
    EXPECT_THAT(commands.messages, IsEmpty());
    EXPECT_THAT(commands.signals, ElementsAre(flush_exits_signal)) << "each host reports the ends of its PEs";
    EXPECT_THAT(state.pe_ended(exited(0, 1), "host agent 0", start).messages, IsEmpty()) << "its PE has reported";
    state.exits_flushed_on_host(1, start);
    const Commands cause = state.outcome_on_host({128 + SIGKILL, {}}, 2, "host agent 2", start);
    EXPECT_THAT(cause.messages, ElementsAre("host agent 2 ends with status 137; ending the other running host agent"));
    EXPECT_THAT(cause.signals, ElementsAre(end_signal, SIGCONT));
    state.exits_flushed_on_host(2, start);
    EXPECT_EQ(state.deadline(), start + JobState::host_grace);
    EXPECT_THAT(state.pe_ended(exited(2, 137), "host agent 2", start).messages, IsEmpty());
    EXPECT_EQ(state.exit_status(), 128 + SIGKILL);
}

TEST(JobState, ReportsTheFailedRequestIfNoHostReportsACause) {
    JobState state = running_hosts(3);
    (void)state.exit_requested_on_host(cannot_go_on, 0, start);
    EXPECT_THAT(state.exit_requested_on_host({5, 1, true}, 2, start).signals, IsEmpty()) << "one flush serves both";
    EXPECT_EQ(state.deadline(), start + JobState::flush_timeout);
    state.exits_flushed_on_host(2, start);
    state.exits_flushed_on_host(2, start);
    (void)state.pe_ended(exited(1, 0), "host agent 1", start);
    EXPECT_EQ(state.deadline(), start + JobState::flush_timeout) << "host 0 has not reported";
    state.exits_flushed_on_host(0, start);
    const auto found_nobody = start + CauseSearch::timeout;
    EXPECT_EQ(state.deadline(), found_nobody);
    EXPECT_THAT(state.expired(found_nobody).messages,
                ElementsAre("PE 1 cannot go on, as it has reported above; ending the 2 running host agents"));
    EXPECT_EQ(state.exit_status(), 1);
}

TEST(JobState, AHostThatDoesNotAnswerIsNotWaitedForBeyondTheLimit) {
    JobState state = running_hosts(2);
    (void)state.exit_requested_on_host(cannot_go_on, 0, start);
    state.exits_flushed_on_host(0, start);
    const auto late = start + JobState::flush_timeout;
    EXPECT_EQ(state.deadline(), late);
    EXPECT_THAT(state.expired(late).messages, ElementsAre(HasSubstr("PE 1 cannot go on")));
    EXPECT_EQ(state.exit_status(), 1);
}

TEST(JobState, AHostThatHasEndedIsNotWaitedFor) {
    JobState state = running_hosts(2);
    (void)state.pe_ended(exited(1, 0), "host agent 1", start);
    (void)state.exit_requested_on_host(cannot_go_on, 0, start);
    EXPECT_EQ(state.deadline(), start + JobState::flush_timeout);
    state.exits_flushed_on_host(0, start);
    EXPECT_EQ(state.deadline(), start + CauseSearch::timeout);
}

// PEs on other hosts may see the end of a PE that was killed, and exit with a status, before its host reports it.
TEST(JobState, PrefersAKilledPeToAnEarlierExit) {
    JobState state = running_hosts(3);
    EXPECT_THAT(state.outcome_on_host({6, "PE 0 exited"}, 0, "host agent 0", start).signals,
                ElementsAre(flush_exits_signal));
    EXPECT_THAT(state.pe_ended(exited(0, 6), "host agent 0", start).messages, IsEmpty());
    EXPECT_THAT(state.outcome_on_host({128 + SIGKILL, {}}, 2, "host agent 2", start).messages,
                ElementsAre("host agent 2 ends with status 137; ending the other running host agent"));
    EXPECT_EQ(state.exit_status(), 128 + SIGKILL);
}

TEST(JobState, ReportsTheExitedPeOnceNoHostReportsAnother) {
    for (const bool has_ended : {false, true}) {
        JobState state = running_hosts(2);
        (void)state.exit_requested_on_host(cannot_go_on, 1, start);
        EXPECT_THAT(state.outcome_on_host({6, "PE 0 exited"}, 0, "host agent 0", start).messages, IsEmpty());
        if (has_ended) (void)state.pe_ended(exited(0, 6), "host agent 0", start);
        state.exits_flushed_on_host(0, start);
        state.exits_flushed_on_host(1, start);
        EXPECT_EQ(state.deadline(), start);
        EXPECT_THAT(state.expired(start).messages,
                    ElementsAre("PE 0 exited", "host agent 0 ends with status 6; ending the other running host agent"));
        EXPECT_EQ(state.exit_status(), 6);
    }
}

// As where the PE is a shell.
TEST(JobState, AnExitAfterTheFlushIsNamedAtOnce) {
    JobState state = running_hosts(2);
    (void)state.exit_requested_on_host(cannot_go_on, 1, start);
    state.exits_flushed_on_host(0, start);
    state.exits_flushed_on_host(1, start);
    EXPECT_EQ(state.deadline(), start + CauseSearch::timeout);
    (void)state.outcome_on_host({137, "PE 0 exited"}, 0, "host agent 0", start);
    EXPECT_EQ(state.deadline(), start);
    (void)state.expired(start);
    EXPECT_EQ(state.exit_status(), 137);
}

TEST(JobState, AHostAgentLeavesTheReportOfAnExitToTheJobsLauncher) {
    JobState state = running_job(2, std::nullopt, Scope::host);
    const Commands commands = state.pe_ended(exited(1, 6), "PE 1 exited", start);
    EXPECT_THAT(commands.messages, IsEmpty());
    EXPECT_THAT(commands.signals, ElementsAre(SIGTERM, SIGCONT));
    EXPECT_EQ(commands.outcome, (Outcome{6, "PE 1 exited; ending the other running PE"}));
}

// The last to end is the cause, though another PE has reported.
TEST(JobState, AHostAgentReportsTheOutcomeOfItsLastPe) {
    JobState state = running_job(2, std::nullopt, Scope::host);
    (void)state.exit_requested(cannot_go_on, start);
    (void)state.pe_ended(exited(1, 1), "PE 1", start);
    EXPECT_EQ(state.pe_ended(killed(0, SIGKILL), "PE 0", start).outcome, (Outcome{128 + SIGKILL, {}}));
}

TEST(JobState, AHostAgentThatFailsWithoutARequestIsTheCause) {
    JobState state = running_hosts(2);
    (void)state.exit_requested_on_host(cannot_go_on, 0, start);
    EXPECT_THAT(state.pe_ended(exited(1, 255), "host agent 1", start).messages, ElementsAre(HasSubstr("host agent 1")));
    EXPECT_EQ(state.exit_status(), 255);
}

TEST(JobState, IgnoresAFlushReportBeforeAnyRequest) {
    JobState state = running_hosts(2);
    state.exits_flushed_on_host(0, start);
    state.exits_flushed_on_host(1, start);
    EXPECT_FALSE(state.deadline().has_value());
    (void)state.exit_requested_on_host(cannot_go_on, 0, start);
    EXPECT_EQ(state.deadline(), start + JobState::flush_timeout);
}

TEST(JobState, AHostThatSucceedsByGlobalExitEndsTheOthersWithoutAMessage) {
    JobState state = running_hosts(2);
    const Commands commands = state.outcome_on_host({0, {}}, 1, "host agent 1", start);
    EXPECT_THAT(commands.messages, IsEmpty());
    EXPECT_THAT(commands.signals, ElementsAre(end_signal, SIGCONT));
    EXPECT_EQ(state.exit_status(), 0);
    EXPECT_THAT(state.outcome_on_host({7, {}}, 0, "host agent 0", start).signals, IsEmpty()) << "the first counts";
}

TEST(JobState, AHostAgentForwardsFailedRequestsWithoutAMessage) {
    JobState state = running_job(2, std::nullopt, Scope::host);
    const Commands first = state.exit_requested(cannot_go_on, start);
    EXPECT_EQ(first.forwarded, cannot_go_on);
    EXPECT_FALSE(first.flush_exits);
    EXPECT_EQ(state.exit_requested({0, 1, true}, start).forwarded, (ExitRequest{0, 1, true}));
    (void)state.pe_ended(exited(1, 1), "PE 1", start);
    const Commands last = state.pe_ended(exited(0, 1), "PE 0", start);
    EXPECT_TRUE(last.close);
    EXPECT_THAT(last.messages, IsEmpty());
    EXPECT_FALSE(last.outcome.has_value());
    EXPECT_EQ(state.exit_status(), 1);
}

TEST(JobState, AHostAgentWithoutAnOrderEndsByItself) {
    JobState state = running_job(2, std::nullopt, Scope::host);
    (void)state.exit_requested(cannot_go_on, start);
    const auto late = start + JobState::stop_order_timeout;
    EXPECT_EQ(state.deadline(), late);
    const Commands decided = state.expired(late);
    EXPECT_THAT(decided.messages, ElementsAre(HasSubstr("PE 1 cannot go on")));
    EXPECT_EQ(decided.outcome, (Outcome{1, {}}));
}

TEST(JobState, TheTimeoutForAStopOrderExceedsThatOfTheLauncher) {
    EXPECT_GT(JobState::stop_order_timeout, JobState::flush_timeout + CauseSearch::timeout);
    EXPECT_GT(JobState::host_grace, JobState::grace);
}

TEST(JobState, AnOutcomeIsReportedUnlessItWasOrdered) {
    JobState killed_pe = running_job(2, std::nullopt, Scope::host);
    EXPECT_EQ(killed_pe.pe_ended(killed(1, SIGKILL), "PE 1", start).outcome, (Outcome{128 + SIGKILL, {}}));
    EXPECT_FALSE(killed_pe.pe_ended(exited(0, 1), "PE 0", start).outcome.has_value());
    JobState not_started = running_job(1, std::nullopt, Scope::host);
    EXPECT_EQ(not_started.failed(exit_not_found, "no").outcome, (Outcome{exit_not_found, {}}));
    JobState left = running_job(2, std::nullopt, Scope::host);
    EXPECT_EQ(left.exit_requested({0, 0, false}, start).outcome, (Outcome{0, {}}));
    JobState ordered = running_job(2, std::nullopt, Scope::host);
    EXPECT_FALSE(ordered.stop_requested(start).outcome.has_value());
    JobState good = running_job(1, std::nullopt, Scope::host);
    EXPECT_FALSE(good.pe_ended(exited(0, 0), "PE 0", start).outcome.has_value());
}

}  // namespace
}  // namespace npushmem::run
