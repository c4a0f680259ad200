#include "core/tools/run/pe_end.hpp"

#include <gtest/gtest.h>

#include <csignal>

namespace npushmem::run {
namespace {

TEST(PeEnd, ExitCodeIsTheStatusOrTheSignalAbove128) {
    EXPECT_EQ(exit_code_of({0, 1, HowEnded::exited, 0}), 0);
    EXPECT_EQ(exit_code_of({0, 1, HowEnded::exited, 255}), 255);
    EXPECT_EQ(exit_code_of({0, 1, HowEnded::killed, SIGKILL}), 137);
    EXPECT_EQ(exit_code_of({0, 1, HowEnded::dumped_core, SIGSEGV}), 139);
}

TEST(PeEnd, HowItEndedComesFromTheSystem) {
    EXPECT_EQ(how_ended(CLD_EXITED), HowEnded::exited);
    EXPECT_EQ(how_ended(CLD_KILLED), HowEnded::killed);
    EXPECT_EQ(how_ended(CLD_DUMPED), HowEnded::dumped_core);
}

TEST(PeEnd, OnlyStatusZeroIsNoFailure) {
    EXPECT_FALSE((PeEnd{0, 1, HowEnded::exited, 0}).failed());
    EXPECT_TRUE((PeEnd{0, 1, HowEnded::exited, 1}).failed());
    EXPECT_TRUE((PeEnd{0, 1, HowEnded::killed, SIGTERM}).failed());
}

TEST(PeEnd, DescriptionNamesEverything) {
    EXPECT_EQ(
        describe({3, 77, HowEnded::dumped_core, SIGSEGV}, "a", 1),
        "PE 3 (pid 77, host a, emulated host 1) was killed by signal 11 (SIGSEGV: Segmentation fault), core dumped");
    EXPECT_EQ(describe({0, 5, HowEnded::killed, SIGKILL}, "a", -1),
              "PE 0 (pid 5, host a) was killed by signal 9 (SIGKILL: Killed)");
    EXPECT_EQ(describe({2, 5, HowEnded::exited, 7}, "a", -1), "PE 2 (pid 5, host a) exited with status 7");
}

TEST(PeEnd, SignalWithoutANameKeepsItsNumber) {
    EXPECT_EQ(signal_name(SIGUSR1), "SIGUSR1");
    EXPECT_EQ(signal_name(SIGRTMIN + 3), "signal " + std::to_string(SIGRTMIN + 3));
}

}  // namespace
}  // namespace npushmem::run
