#include "core/tools/run/exit_record.hpp"

#include <gtest/gtest.h>

#include <csignal>

namespace npushmem::run {
namespace {

TEST(ExitRecord, ExitCodeIsTheStatusOrTheSignalAbove128) {
    EXPECT_EQ(exit_code_of({0, 1, TerminationKind::exited, 0}), 0);
    EXPECT_EQ(exit_code_of({0, 1, TerminationKind::exited, 255}), 255);
    EXPECT_EQ(exit_code_of({0, 1, TerminationKind::killed, SIGKILL}), 137);
    EXPECT_EQ(exit_code_of({0, 1, TerminationKind::dumped_core, SIGSEGV}), 139);
}

TEST(ExitRecord, HowItEndedComesFromTheSystem) {
    EXPECT_EQ(termination_kind(CLD_EXITED), TerminationKind::exited);
    EXPECT_EQ(termination_kind(CLD_KILLED), TerminationKind::killed);
    EXPECT_EQ(termination_kind(CLD_DUMPED), TerminationKind::dumped_core);
}

TEST(ExitRecord, OnlyStatusZeroIsNoFailure) {
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

}  // namespace
}  // namespace npushmem::run
