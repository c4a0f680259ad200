#include "core/tools/run/job_state.hpp"

#include <gmock/gmock.h>

#include <csignal>

#include "core/tools/run/exit_record.hpp"
#include "core/tools/run/remote_launch.hpp"

namespace npushmem::run {
namespace {

using std::chrono::milliseconds;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;

constexpr Clock::time_point start{};

ExitRecord exited(int pe, int status) { return {pe, 100 + pe, TerminationKind::exited, status}; }
ExitRecord killed(int pe, int signal) { return {pe, 100 + pe, TerminationKind::killed, signal}; }

JobState running_job(int npes, std::optional<milliseconds> limit = std::nullopt, Scope scope = Scope::job) {
    JobState state(npes, start, limit, scope);
    for (int pe = 0; pe < npes; ++pe) state.pe_started();
    return state;
}

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

TEST(JobState, HostAgentsGetTheSignalOfTheirOwn) {
    JobState state = running_job(2, std::nullopt, Scope::agents);
    EXPECT_THAT(state.signalled(SIGTERM).signals, ElementsAre(SIGTERM)) << "a user's";
    EXPECT_THAT(state.pe_ended(exited(0, 1), "host agent 0", start).signals, ElementsAre(end_signal, SIGCONT));
    EXPECT_EQ(state.deadline(), start + JobState::host_grace);
}

TEST(JobState, WhoDoesNotEndInTimeIsKilled) {
    JobState state = running_job(2);
    (void)state.pe_ended(exited(0, 7), "PE 0", start);
    const Commands late = state.expired(start + JobState::grace);
    EXPECT_TRUE(late.close);
    EXPECT_THAT(late.signals, IsEmpty());
    EXPECT_FALSE(state.deadline().has_value());
    EXPECT_EQ(state.exit_status(), 7);
}

TEST(JobState, AGraceOfOneSecondWouldBeTooLong) { EXPECT_LE(JobState::grace, milliseconds(500)); }

TEST(JobState, FailureOfTheOnlyPeLeavesNobodyToEnd) {
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

constexpr ExitRequest cannot_go_on{1, 1, true};

TEST(JobState, APeThatCannotGoOnEndsTheJobOnceNobodyWasFoundToHaveEnded) {
    JobState state = running_job(3);
    const Commands said = state.exit_requested(cannot_go_on, start);
    EXPECT_TRUE(said.flush_exits);
    EXPECT_THAT(said.messages, IsEmpty());
    EXPECT_THAT(said.signals, IsEmpty());
    EXPECT_FALSE(state.exit_requested({2, 1, true}, start).flush_exits) << "one flush serves both";
    EXPECT_FALSE(state.deadline().has_value());
    state.exits_flushed(start);
    const auto found_nobody = start + JobState::cause_timeout;
    EXPECT_EQ(state.deadline(), found_nobody);
    const Commands decided = state.expired(found_nobody);
    EXPECT_THAT(decided.messages, ElementsAre(HasSubstr("PE 1 cannot go on")));
    EXPECT_THAT(decided.signals, ElementsAre(SIGTERM, SIGCONT));
    EXPECT_EQ(state.deadline(), found_nobody + JobState::grace);
    EXPECT_EQ(state.exit_status(), 1);
    state.exits_flushed(found_nobody);
    EXPECT_EQ(state.deadline(), found_nobody + JobState::grace);
}

TEST(JobState, TheEndThatMadeAPeUnableToGoOnIsTheJobs) {
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
TEST(JobState, TheEndThatMadeAPeUnableToGoOnMayComeALittleLater) {
    JobState state = running_job(3);
    (void)state.exit_requested(cannot_go_on, start);
    state.exits_flushed(start);
    EXPECT_THAT(state.pe_ended(exited(0, 137), "PE 0 exited with status 137", start).messages,
                ElementsAre(HasSubstr("PE 0 exited with status 137")));
    EXPECT_EQ(state.exit_status(), 137);
}

TEST(JobState, BeforeAllHaveStartedTheCauseIsLookedForAsWell) {
    JobState state(3, start, std::nullopt);
    state.pe_started();
    state.pe_started();
    const Commands said = state.exit_requested(cannot_go_on, start);
    EXPECT_TRUE(said.flush_exits);
    EXPECT_FALSE(said.close);
    EXPECT_TRUE(state.pe_ended(killed(0, SIGKILL), "PE 0 died", start).close);
    EXPECT_EQ(state.exit_status(), 128 + SIGKILL);
}

TEST(JobState, TheEndsOfThoseThatCannotGoOnAreNotTheCause) {
    JobState state = running_job(3);
    (void)state.exit_requested(cannot_go_on, start);
    (void)state.exit_requested({2, 1, true}, start);
    EXPECT_THAT(state.pe_ended(exited(2, 4), "PE 2 exited", start).messages, IsEmpty());
    EXPECT_THAT(state.pe_ended(exited(1, 5), "PE 1 exited", start).messages, IsEmpty());
    EXPECT_THAT(state.pe_ended(killed(0, SIGKILL), "PE 0 died", start).messages, ElementsAre("PE 0 died"));
    EXPECT_EQ(state.exit_status(), 128 + SIGKILL);
}

TEST(JobState, TheFirstThatCouldNotGoOnIsNamedWhenAllHaveEndedWithoutACause) {
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

TEST(JobState, NobodyEndsTheJobAsASuccessAfterSomebodyCouldNotGoOn) {
    JobState state = running_job(2);
    (void)state.exit_requested({-1, 1, true}, start);
    (void)state.pe_ended(exited(1, 0), "", start);
    const Commands last = state.pe_ended(exited(0, 0), "", start);
    EXPECT_TRUE(last.close);
    EXPECT_THAT(last.messages, ElementsAre(HasSubstr("a PE cannot go on")));
    EXPECT_EQ(state.exit_status(), 1);
}

JobState running_hosts(int hosts, std::optional<milliseconds> limit = std::nullopt) {
    return running_job(hosts, limit, Scope::agents);
}

// The host of the PE that was killed reports later than the host of a PE that noticed it.
TEST(JobState, ThePeThatWasKilledOnOneHostIsNamedThoughAnotherHostReportedFirst) {
    JobState state = running_hosts(3);
    const Commands said = state.exit_requested_on_host(cannot_go_on, 0, start);
    EXPECT_THAT(said.messages, IsEmpty());
    EXPECT_THAT(said.signals, ElementsAre(flush_exits_signal)) << "each host reports the ends of its PEs";
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

TEST(JobState, ThePeThatCannotGoOnIsNamedWhenNoHostHasFoundACause) {
    JobState state = running_hosts(3);
    (void)state.exit_requested_on_host(cannot_go_on, 0, start);
    EXPECT_THAT(state.exit_requested_on_host({5, 1, true}, 2, start).signals, IsEmpty()) << "one flush serves both";
    EXPECT_EQ(state.deadline(), start + JobState::flush_timeout);
    state.exits_flushed_on_host(2, start);
    state.exits_flushed_on_host(2, start);
    (void)state.pe_ended(exited(1, 0), "host agent 1", start);
    EXPECT_EQ(state.deadline(), start + JobState::flush_timeout) << "host 0 has not reported";
    state.exits_flushed_on_host(0, start);
    const auto found_nobody = start + JobState::cause_timeout;
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
    EXPECT_EQ(state.deadline(), start + JobState::cause_timeout);
}

// PEs on other hosts may see the end of a PE that was killed, and exit with a status, before its host reports it.
TEST(JobState, ThePeThatWasKilledOnOneHostIsNamedThoughAnotherExitedFirst) {
    JobState state = running_hosts(3);
    EXPECT_THAT(state.outcome_on_host({6, "PE 0 exited"}, 0, "host agent 0", start).signals,
                ElementsAre(flush_exits_signal));
    EXPECT_THAT(state.pe_ended(exited(0, 6), "host agent 0", start).messages, IsEmpty());
    EXPECT_THAT(state.outcome_on_host({128 + SIGKILL, {}}, 2, "host agent 2", start).messages,
                ElementsAre("host agent 2 ends with status 137; ending the other running host agent"));
    EXPECT_EQ(state.exit_status(), 128 + SIGKILL);
}

TEST(JobState, ThePeThatExitedIsNamedAsSoonAsNoHostHasFoundAnother) {
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
    EXPECT_EQ(state.deadline(), start + JobState::cause_timeout);
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

TEST(JobState, AHostAgentThatFlushesUnasked) {
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

TEST(JobState, AHostAgentForwardsThatItsPesCannotGoOnAndNamesNone) {
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

TEST(JobState, AHostAgentWaitsForItsOrderLongerThanTheLauncherWaitsForHosts) {
    EXPECT_GT(JobState::stop_order_timeout, JobState::flush_timeout + JobState::cause_timeout);
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

TEST(JobState, LauncherFailureCloses) {
    JobState state = running_job(2);
    const Commands commands = state.failed(exit_not_executable, "no");
    EXPECT_TRUE(commands.close);
    EXPECT_THAT(commands.messages, ElementsAre("no"));
    EXPECT_EQ(state.exit_status(), exit_not_executable);
}

TEST(JobState, NothingMattersOnceClosing) {
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
