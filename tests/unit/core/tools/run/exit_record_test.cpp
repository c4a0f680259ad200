// SPDX-License-Identifier: BSD-3-Clause
#include "core/tools/run/exit_record.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <csignal>

#include "core/tools/run/job_state.hpp"

namespace npushmem::run {

namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;

TEST(ExitRecord, ExitCodeIsTheStatusOrTheSignalAbove128) {
    EXPECT_EQ(exit_code_of({0, 1, TerminationKind::exited, 0}), 0);
    EXPECT_EQ(exit_code_of({0, 1, TerminationKind::exited, 255}), 255);
    EXPECT_EQ(exit_code_of({0, 1, TerminationKind::killed, SIGKILL}), 137);
    EXPECT_EQ(exit_code_of({0, 1, TerminationKind::dumped_core, SIGSEGV}), 139);
}

TEST(ExitRecord, ConvertsTheTerminationKindOfTheSystem) {
    EXPECT_EQ(termination_kind(CLD_EXITED), TerminationKind::exited);
    EXPECT_EQ(termination_kind(CLD_KILLED), TerminationKind::killed);
    EXPECT_EQ(termination_kind(CLD_DUMPED), TerminationKind::dumped_core);
}

TEST(ExitRecord, OnlyExitStatusZeroIsASuccess) {
    EXPECT_FALSE((ExitRecord{0, 1, TerminationKind::exited, 0}).failed());
    EXPECT_TRUE((ExitRecord{0, 1, TerminationKind::exited, 1}).failed());
    EXPECT_TRUE((ExitRecord{0, 1, TerminationKind::killed, SIGTERM}).failed());
}

TEST(ExitRecord, DescriptionNamesEverything) {
    EXPECT_EQ(
        describe({3, 77, TerminationKind::dumped_core, SIGSEGV}, "a", 1),
        "PE 3 (pid 77, host a, emulated host 1) was killed by signal 11 (SIGSEGV: Segmentation fault), core dumped");
    EXPECT_EQ(describe({0, 5, TerminationKind::killed, SIGKILL}, "a", -1),
              "PE 0 (pid 5, host a) was killed by signal 9 (SIGKILL: Killed)");
    EXPECT_EQ(describe({2, 5, TerminationKind::exited, 7}, "a", -1), "PE 2 (pid 5, host a) exited with status 7");
}

TEST(ExitRecord, SignalWithoutANameKeepsItsNumber) {
    EXPECT_EQ(signal_name(SIGUSR1), "SIGUSR1");
    EXPECT_EQ(signal_name(SIGRTMIN + 3), "signal " + std::to_string(SIGRTMIN + 3));
}

TEST(ExitRequests, ReadsLinesThatArriveInPieces) {
    ExitRequests requests;
    EXPECT_THAT(requests.take("exit 3 "), IsEmpty());
    EXPECT_THAT(requests.take("7\nexit 1 0\nex"), ElementsAre(ExitRequest{3, 7, false}, ExitRequest{1, 0, false}));
    EXPECT_THAT(requests.take("it 2 -1\n"), ElementsAre(ExitRequest{2, -1, false}));
}

TEST(ExitRequests, DropsMalformedLines) {
    ExitRequests requests;
    for (const char* line : {"\n", "exit\n", "exit 1\n", "exit x 1\n", "exit 1 y\n", "exit -2 0\n", "quit 1 1\n",
                             "exit 1 2 3\n", "failed 1 2 shmem\n", "exit 1 2 shmem 3\n", "exit 1 x shmem\n"})
        EXPECT_THAT(requests.take(line), IsEmpty()) << line;
    EXPECT_THAT(requests.take(std::string(1000, 'z')), IsEmpty());
    EXPECT_THAT(requests.take("exit 0 4\n"), ElementsAre(ExitRequest{0, 4, false})) << "an endless line was forgotten";
}

TEST(ExitRequests, ReadsFailedRequests) {
    ExitRequests requests;
    EXPECT_THAT(requests.take("failed 5 1\nfailed -1 1\n"),
                ElementsAre(ExitRequest{5, 1, true}, ExitRequest{-1, 1, true}));
}

TEST(ExitRequests, AreParsedAsTheyWereWritten) {
    for (const auto& request :
         {ExitRequest{5, 1, true}, ExitRequest{-1, 1, true}, ExitRequest{3, -7, false}, ExitRequest{3, 7, false, true}})
        EXPECT_EQ(parse_exit_request(line_of(request)), request);
}

TEST(ExitRequests, MessagesUseTheCallNameOfTheProgram) {
    for (const bool openshmem : {false, true}) {
        ExitRequests requests;
        const auto taken = requests.take(openshmem ? "exit 3 7 shmem\n" : "exit 3 7\n");
        ASSERT_THAT(taken, ElementsAre(ExitRequest{3, 7, false, openshmem}));
        JobState state(1, {}, std::nullopt);
        state.pe_started();
        EXPECT_THAT(state.exit_requested(taken[0], {}).messages,
                    ElementsAre(HasSubstr(openshmem ? " by shmem_global_exit(7)" : " by npushmem_global_exit(7)")));
    }
}

TEST(JobState, AFailedRequestFailsTheJob) {
    JobState state(1, {}, std::nullopt);
    state.pe_started();
    (void)state.exit_requested({0, 1, true}, {});
    const Commands ended = state.pe_ended({0, 10, TerminationKind::exited, 0}, "PE 0", {});
    EXPECT_THAT(ended.messages, ElementsAre(HasSubstr("PE 0 cannot go on")));
    EXPECT_EQ(state.exit_status(), 1);
}

TEST(JobState, AnExitRequestEndsTheJobWithItsStatus) {
    for (const int status : {0, 7}) {
        JobState state(2, {}, std::nullopt);
        state.pe_started();
        state.pe_started();
        const Commands commands = state.exit_requested({1, status, false}, {});
        EXPECT_FALSE(commands.signals.empty());
        EXPECT_EQ(commands.messages.size(), status == 0 ? 0U : 1U);
        // The others die by the launcher's own signal, which is no failure of theirs.
        (void)state.pe_ended({1, 11, TerminationKind::exited, status}, "PE 1", {});
        EXPECT_THAT(state.pe_ended({0, 10, TerminationKind::killed, 15}, "PE 0", {}).messages, IsEmpty());
        EXPECT_EQ(state.exit_status(), status);
    }
}

TEST(Outcome, IsParsedAsItWasWritten) {
    for (const Outcome& outcome :
         {Outcome{137, {}}, Outcome{-1, {}}, Outcome{0, {}}, Outcome{6, "PE 2 (pid 7, host b) exited with status 6"}})
        EXPECT_EQ(parse_outcome(text_of(outcome)), outcome);
}

TEST(Outcome, RejectsOtherText) {
    for (const char* text : {"", " ", "x", " 3", "3x PE 2", "99999999999"}) EXPECT_FALSE(parse_outcome(text)) << text;
}

}  // namespace

}  // namespace npushmem::run
