// SPDX-License-Identifier: BSD-3-Clause
#include "core/tools/run/job_state.hpp"

#include <gmock/gmock.h>

#include <csignal>

#include "core/tools/run/exit_record.hpp"
#include "core/tools/run/remote_launch.hpp"
#include "tests/unit/core/tools/run/running_job.hpp"

namespace npushmem::run {
namespace {

using std::chrono::milliseconds;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;

TEST(JobState, AllEndingWithZeroIsSuccess) {
    JobState state = running_job(2);
    const Commands first = state.pe_ended(exited(1, 0), "one", start);
    EXPECT_FALSE(first.close);
    EXPECT_THAT(first.messages, IsEmpty());
    EXPECT_THAT(first.signals, IsEmpty());
    EXPECT_FALSE(state.deadline().has_value());
    const Commands second = state.pe_ended(exited(0, 0), "zero", start);
    EXPECT_TRUE(second.close);
    EXPECT_THAT(second.messages, IsEmpty());
    EXPECT_EQ(state.exit_status(), 0);
}

TEST(JobState, AnUnknownOutcomeIsAFailure) {
    JobState state(2, start, std::nullopt);
    EXPECT_EQ(state.exit_status(), exit_launcher_failed);
    state.pe_started();
    state.pe_started();
    (void)state.pe_ended(exited(0, 0), "zero", start);
    EXPECT_EQ(state.exit_status(), exit_launcher_failed) << "nothing is known of PE 1";
    (void)state.pe_ended(exited(1, 0), "one", start);
    EXPECT_EQ(state.exit_status(), 0);
}

TEST(JobState, FirstFailureEndsTheJobAndGivesItsStatus) {
    JobState state = running_job(3);
    const Commands first = state.pe_ended(killed(1, SIGSEGV), "PE 1 died", start);
    EXPECT_THAT(first.messages, ElementsAre("PE 1 died; ending the other 2 running PEs"));
    EXPECT_THAT(first.signals, ElementsAre(SIGTERM, SIGCONT));
    EXPECT_FALSE(first.close);
    EXPECT_EQ(state.deadline(), start + JobState::grace);
    EXPECT_THAT(state.pe_ended(killed(0, SIGTERM), "PE 0 died", start).messages, IsEmpty());
    EXPECT_TRUE(state.pe_ended(exited(2, 3), "PE 2 exited", start).close);
    EXPECT_EQ(state.exit_status(), 128 + SIGSEGV);
}

TEST(JobState, AJobThatSurvivesDeathsGoesOnAndReturnsTheStatusOfTheFirst) {
    JobState state(4, start, std::nullopt, Scope::job, true);
    for (int pe = 0; pe < 4; ++pe) state.pe_started();
    const Commands first = state.pe_ended(killed(1, SIGKILL), "PE 1 died", start);
    EXPECT_THAT(first.messages, ElementsAre("PE 1 died; the job goes on (NPUSHMEM_ON_PEER_DEATH=survive)"));
    EXPECT_THAT(first.signals, IsEmpty());
    EXPECT_FALSE(first.close || first.outcome || state.deadline());
    EXPECT_THAT(state.pe_ended(exited(2, 3), "PE 2 exited", start).messages, ElementsAre(HasSubstr("PE 2 exited;")));
    EXPECT_FALSE(state.pe_ended(exited(0, 0), "PE 0", start).close);
    EXPECT_TRUE(state.pe_ended(exited(3, 0), "PE 3", start).close);
    EXPECT_EQ(state.exit_status(), 128 + SIGKILL);
}

// A failed start of the others, for example.
TEST(JobState, ARequestEndsAJobThatSurvivesDeaths) {
    JobState state(3, start, std::nullopt, Scope::job, true);
    for (int pe = 0; pe < 3; ++pe) state.pe_started();
    (void)state.pe_ended(killed(2, SIGKILL), "PE 2 died", start);
    EXPECT_TRUE(state.exit_requested(cannot_go_on, start).flush_exits);
    state.exits_flushed(start);
    EXPECT_THAT(state.expired(start + CauseSearch::timeout).signals, ElementsAre(SIGTERM, SIGCONT));
    EXPECT_EQ(state.exit_status(), 128 + SIGKILL) << "of the first PE that failed";
}

TEST(JobState, APeThatCannotGoOnIsNoDeathToSurvive) {
    JobState state(3, start, std::nullopt, Scope::job, true);
    for (int pe = 0; pe < 3; ++pe) state.pe_started();
    (void)state.exit_requested(cannot_go_on, start);
    EXPECT_THAT(state.pe_ended(exited(cannot_go_on.pe, 9), "the PE exited", start).messages, IsEmpty());
    (void)state.pe_ended(killed(2, SIGKILL), "PE 2 died", start);
    state.exits_flushed(start);
    EXPECT_THAT(state.expired(start + CauseSearch::timeout).signals, Not(IsEmpty()));
    EXPECT_EQ(state.exit_status(), 128 + SIGKILL);
}

TEST(JobState, AHostAgentReportsTheDeathsThatItsJobSurvives) {
    JobState agent(2, start, std::nullopt, Scope::host, true);
    for (int pe = 0; pe < 2; ++pe) agent.pe_started();
    const Commands death = agent.pe_ended(killed(1, SIGKILL), "PE 1 died", start);
    EXPECT_THAT(death.messages, IsEmpty());
    ASSERT_TRUE(death.outcome);
    EXPECT_EQ(death.outcome->status, 128 + SIGKILL);
    JobState job(2, start, std::nullopt, Scope::agents, true);
    for (int host = 0; host < 2; ++host) job.pe_started();
    const Commands shown = job.outcome_on_host(*death.outcome, 1, "host b", start);
    EXPECT_THAT(shown.messages, ElementsAre("PE 1 died; the job goes on (NPUSHMEM_ON_PEER_DEATH=survive)"));
    EXPECT_FALSE(shown.close || job.deadline());
    (void)job.exit_requested_on_host(cannot_go_on, 0, start);
    for (int host = 0; host < 2; ++host) job.exits_flushed_on_host(host, start);
    EXPECT_THAT(job.expired(start + CauseSearch::timeout).signals, Not(IsEmpty()));
    EXPECT_EQ(job.exit_status(), 128 + SIGKILL);
}

// The others may end first: they cannot start without it.
TEST(JobState, ADeathThatIsReportedLastIsNamedToo) {
    JobState state(2, start, std::nullopt, Scope::job, true);
    for (int pe = 0; pe < 2; ++pe) state.pe_started();
    (void)state.exit_requested(cannot_go_on, start);
    (void)state.pe_ended(exited(cannot_go_on.pe, 1), "PE 1 exited", start);
    const Commands last = state.pe_ended(exited(0, 3), "PE 0 exited with status 3", start);
    EXPECT_THAT(last.messages, ElementsAre("PE 0 exited with status 3", "PE 1 cannot go on, as it has reported above"));
    EXPECT_TRUE(last.close);
    EXPECT_EQ(state.exit_status(), 3);
}

TEST(JobState, AHostAgentReportsADeathThatIsItsLastEnd) {
    JobState agent(2, start, std::nullopt, Scope::host, true);
    for (int pe = 0; pe < 2; ++pe) agent.pe_started();
    (void)agent.exit_requested(cannot_go_on, start);
    (void)agent.pe_ended(exited(cannot_go_on.pe, 1), "PE 1 exited", start);
    const Commands last = agent.pe_ended(killed(0, SIGKILL), "PE 0 died", start);
    EXPECT_THAT(last.messages, IsEmpty());
    EXPECT_EQ(last.outcome, (Outcome{128 + SIGKILL, "PE 0 died"}));
    EXPECT_TRUE(last.close);
}

TEST(JobState, TheEndOfAnAgentWhosePesDiedIsNotReportedAgain) {
    JobState state(2, start, std::nullopt, Scope::agents, true);
    for (int host = 0; host < 2; ++host) state.pe_started();
    EXPECT_THAT(state.pe_ended(exited(1, 137), "host agent 1", start).messages, IsEmpty());
    EXPECT_TRUE(state.pe_ended(exited(0, 0), "host agent 0", start).close);
    EXPECT_EQ(state.exit_status(), 137);
}

TEST(JobState, AnOrderedEndReportsNoPe) {
    JobState state = running_job(2);
    const Commands ordered = state.stop_requested(start);
    EXPECT_THAT(ordered.signals, ElementsAre(SIGTERM, SIGCONT));
    EXPECT_THAT(ordered.messages, IsEmpty());
    EXPECT_EQ(state.deadline(), start + JobState::grace);
    EXPECT_THAT(state.stop_requested(start).signals, IsEmpty()) << "PEs get one TERM";
    EXPECT_THAT(state.pe_ended(killed(1, SIGTERM), "PE 1 died", start).messages, IsEmpty());
    EXPECT_THAT(state.pe_ended(exited(0, 0), "PE 0", start).messages, IsEmpty());
    EXPECT_EQ(state.exit_status(), 128 + SIGTERM);
}

TEST(JobState, AnOrderedEndBeforeAllHaveStartedClosesAtOnce) {
    JobState state(2, start, std::nullopt);
    const Commands ordered = state.stop_requested(start);
    EXPECT_TRUE(ordered.close);
    EXPECT_THAT(ordered.messages, IsEmpty());
}

TEST(JobState, HostAgentsReceiveTheEndSignal) {
    JobState state = running_job(2, std::nullopt, Scope::agents);
    EXPECT_THAT(state.signalled(SIGTERM).signals, ElementsAre(SIGTERM)) << "a user's";
    EXPECT_THAT(state.pe_ended(exited(0, 1), "host agent 0", start).signals, ElementsAre(end_signal, SIGCONT));
    EXPECT_EQ(state.deadline(), start + JobState::host_grace);
}

TEST(JobState, ClosesWhenTheGraceExpires) {
    JobState state = running_job(2);
    (void)state.pe_ended(exited(0, 7), "PE 0", start);
    const Commands late = state.expired(start + JobState::grace);
    EXPECT_TRUE(late.close);
    EXPECT_THAT(late.signals, IsEmpty());
    EXPECT_FALSE(state.deadline().has_value());
    EXPECT_EQ(state.exit_status(), 7);
}

TEST(JobState, GraceIsAtMostHalfASecond) { EXPECT_LE(JobState::grace, milliseconds(500)); }

TEST(JobState, FailureOfTheOnlyPeClosesTheJob) {
    JobState state = running_job(1);
    const Commands commands = state.pe_ended(exited(0, 1), "PE 0 exited with status 1", start);
    EXPECT_THAT(commands.messages, ElementsAre("PE 0 exited with status 1"));
    EXPECT_TRUE(commands.close);
}

TEST(JobState, FailureBeforeAllHaveStartedClosesAtOnce) {
    JobState state(3, start, std::nullopt);
    state.pe_started();
    state.pe_started();
    const Commands commands = state.pe_ended(exited(0, 5), "PE 0", start);
    EXPECT_TRUE(commands.close);
    EXPECT_THAT(commands.messages, ElementsAre("PE 0; ending the other running PE"));
    EXPECT_EQ(state.exit_status(), 5);
}

TEST(JobState, SignalsAreForwardedAndASecondInterruptionKills) {
    JobState state = running_job(2);
    EXPECT_THAT(state.signalled(SIGUSR1).signals, ElementsAre(SIGUSR1));
    EXPECT_THAT(state.signalled(SIGUSR1).signals, ElementsAre(SIGUSR1));
    EXPECT_THAT(state.signalled(SIGINT).signals, ElementsAre(SIGINT));
    const Commands again = state.signalled(SIGTERM);
    EXPECT_TRUE(again.close);
    EXPECT_THAT(again.signals, IsEmpty());
    EXPECT_THAT(again.messages, ElementsAre(HasSubstr("SIGTERM again")));
    EXPECT_EQ(state.exit_status(), 128 + SIGTERM);
}

TEST(JobState, AProgramMayHandleAnInterruptionAndSucceed) {
    JobState state = running_job(1);
    (void)state.signalled(SIGINT);
    EXPECT_TRUE(state.pe_ended(exited(0, 0), "", start).close);
    EXPECT_EQ(state.exit_status(), 0);
}

TEST(JobState, TimeLimitEndsTheJobWithItsOwnStatus) {
    JobState state = running_job(2, milliseconds(1500));
    EXPECT_EQ(state.deadline(), start + milliseconds(1500));
    const auto now = start + milliseconds(1500);
    const Commands commands = state.expired(now);
    EXPECT_THAT(commands.messages, ElementsAre(HasSubstr("limit of 1.5 s")));
    EXPECT_THAT(commands.signals, ElementsAre(SIGTERM, SIGCONT));
    EXPECT_EQ(state.deadline(), now + JobState::grace);
    EXPECT_TRUE(state.expired(now + JobState::grace).close);
    EXPECT_EQ(state.exit_status(), exit_timeout);
}

TEST(JobState, TimeLimitBeforeAllHaveStartedClosesAtOnce) {
    JobState state(2, start, milliseconds(10));
    EXPECT_TRUE(state.expired(start + milliseconds(10)).close);
    EXPECT_EQ(state.exit_status(), exit_timeout);
}

TEST(JobState, AnExitRequestAfterAFailureIsIgnored) {
    JobState state = running_job(3);
    (void)state.pe_ended(exited(0, 9), "PE 0", start);
    EXPECT_THAT(state.exit_requested({1, 0, false}, start).signals, IsEmpty());
    EXPECT_EQ(state.exit_status(), 9);
}

TEST(JobState, AFailedRequestEndsTheJobIfNoPeHasEnded) {
    JobState state = running_job(3);
    const Commands commands = state.exit_requested(cannot_go_on, start);
    EXPECT_TRUE(commands.flush_exits);
    EXPECT_THAT(commands.messages, IsEmpty());
    EXPECT_THAT(commands.signals, IsEmpty());
    EXPECT_FALSE(state.exit_requested({2, 1, true}, start).flush_exits) << "one flush serves both";
    EXPECT_FALSE(state.deadline().has_value());
    state.exits_flushed(start);
    const auto found_nobody = start + CauseSearch::timeout;
    EXPECT_EQ(state.deadline(), found_nobody);
    const Commands decided = state.expired(found_nobody);
    EXPECT_THAT(decided.messages, ElementsAre(HasSubstr("PE 1 cannot go on")));
    EXPECT_THAT(decided.signals, ElementsAre(SIGTERM, SIGCONT));
    EXPECT_EQ(state.deadline(), found_nobody + JobState::grace);
    EXPECT_EQ(state.exit_status(), 1);
    state.exits_flushed(found_nobody);
    EXPECT_EQ(state.deadline(), found_nobody + JobState::grace);
}

TEST(JobState, ReportsTheEndThatCausedAFailedRequest) {
    JobState state = running_job(3);
    (void)state.exit_requested(cannot_go_on, start);
    const Commands cause = state.pe_ended(killed(0, SIGKILL), "PE 0 died", start);
    EXPECT_THAT(cause.messages, ElementsAre(HasSubstr("PE 0 died")));
    state.exits_flushed(start);
    EXPECT_EQ(state.deadline(), start + JobState::grace);
    EXPECT_TRUE(state.pe_ended(exited(1, 1), "PE 1", start).messages.empty());
    EXPECT_EQ(state.exit_status(), 128 + SIGKILL);
}

// A shell ends after its program, so its end comes after the flush.
TEST(JobState, WaitsForTheEndThatCausedAFailedRequestAfterTheFlush) {
    JobState state = running_job(3);
    (void)state.exit_requested(cannot_go_on, start);
    state.exits_flushed(start);
    EXPECT_THAT(state.pe_ended(exited(0, 137), "PE 0 exited with status 137", start).messages,
                ElementsAre(HasSubstr("PE 0 exited with status 137")));
    EXPECT_EQ(state.exit_status(), 137);
}

TEST(JobState, SearchesForTheCauseBeforeAllHaveStarted) {
    JobState state(3, start, std::nullopt);
    state.pe_started();
    state.pe_started();
    const Commands commands = state.exit_requested(cannot_go_on, start);
    EXPECT_TRUE(commands.flush_exits);
    EXPECT_FALSE(commands.close);
    EXPECT_TRUE(state.pe_ended(killed(0, SIGKILL), "PE 0 died", start).close);
    EXPECT_EQ(state.exit_status(), 128 + SIGKILL);
}

TEST(JobState, TheEndOfAPeWithAFailedRequestIsNotTheCause) {
    JobState state = running_job(3);
    (void)state.exit_requested(cannot_go_on, start);
    (void)state.exit_requested({2, 1, true}, start);
    EXPECT_THAT(state.pe_ended(exited(2, 4), "PE 2 exited", start).messages, IsEmpty());
    EXPECT_THAT(state.pe_ended(exited(1, 5), "PE 1 exited", start).messages, IsEmpty());
    EXPECT_THAT(state.pe_ended(killed(0, SIGKILL), "PE 0 died", start).messages, ElementsAre("PE 0 died"));
    EXPECT_EQ(state.exit_status(), 128 + SIGKILL);
}

TEST(JobState, ReportsTheFirstFailedRequestIfNoCauseIsFound) {
    JobState state = running_job(2);
    (void)state.exit_requested(cannot_go_on, start);
    (void)state.exit_requested({0, 1, true}, start);
    (void)state.pe_ended(exited(0, 5), "PE 0 exited", start);
    const Commands last = state.pe_ended(exited(1, 5), "PE 1 exited", start);
    EXPECT_THAT(last.messages, ElementsAre("PE 1 cannot go on, as it has reported above"));
    EXPECT_TRUE(last.close);
    EXPECT_EQ(state.exit_status(), 1);
}

TEST(JobState, TheTimeLimitHoldsWhileTheCauseIsWaitedFor) {
    JobState state = running_job(2, milliseconds(100));
    (void)state.exit_requested(cannot_go_on, start);
    state.exits_flushed(start);
    EXPECT_EQ(state.deadline(), start + milliseconds(100));
    EXPECT_THAT(state.expired(start + milliseconds(100)).messages, ElementsAre(HasSubstr("time limit")));
    EXPECT_EQ(state.exit_status(), exit_timeout);
}

TEST(JobState, AJobWithAFailedRequestNeverSucceeds) {
    JobState state = running_job(2);
    (void)state.exit_requested({-1, 1, true}, start);
    (void)state.pe_ended(exited(1, 0), "", start);
    const Commands last = state.pe_ended(exited(0, 0), "", start);
    EXPECT_TRUE(last.close);
    EXPECT_THAT(last.messages, ElementsAre(HasSubstr("a PE cannot go on")));
    EXPECT_EQ(state.exit_status(), 1);
}

TEST(JobState, LauncherFailureCloses) {
    JobState state = running_job(2);
    const Commands commands = state.failed(exit_not_executable, "no");
    EXPECT_TRUE(commands.close);
    EXPECT_THAT(commands.messages, ElementsAre("no"));
    EXPECT_EQ(state.exit_status(), exit_not_executable);
}

TEST(JobState, IgnoresEveryEventAfterClose) {
    JobState state = running_job(2);
    (void)state.failed(exit_launcher_failed, "no");
    EXPECT_THAT(state.signalled(SIGINT).signals, IsEmpty());
    EXPECT_FALSE(state.pe_ended(exited(0, 9), "", start).close);
    EXPECT_FALSE(state.expired(start).close);
    EXPECT_FALSE(state.failed(1, "again").close);
    EXPECT_EQ(state.exit_status(), exit_launcher_failed);
}

}  // namespace
}  // namespace npushmem::run
