// SPDX-License-Identifier: BSD-3-Clause
#include "core/tools/run/processes.hpp"

#include <gtest/gtest.h>
#include <unistd.h>

namespace npushmem::run {

namespace {

TEST(Exiting, IsReadFromTheProcessFlags) {
    EXPECT_FALSE(is_exiting("19407 (slow) R 19406 19384 7375 0 -1 4195328 39 0 0 0 0"));
    EXPECT_TRUE(is_exiting("19407 (slow) D 19406 19384 7375 0 -1 4195404 39 0 0 0 0"));
    EXPECT_TRUE(is_exiting("19405 (slow) Z 19404 19384 7375 0 -1 4228172 34 0 0 0 0"));
}

TEST(Exiting, TheNameMayHoldBlanksAndBrackets) {
    EXPECT_FALSE(is_exiting("7 (a) Z 1 1 1 1 1 4 () R 1 2 3 0 -1 4194304 39 0"));
    EXPECT_TRUE(is_exiting("7 (a) R 1 1 1 1 1 0 () R 1 2 3 0 -1 4194308 39 0"));
}

TEST(Exiting, IsFalseForMalformedTextAndOtherProcesses) {
    for (const char* text : {"", ")", "7 (a", "7 (a) R 1 2", "7 (a) R 1 2 3 0 -1 x"}) EXPECT_FALSE(is_exiting(text));
    EXPECT_FALSE(is_exiting(::getpid()));
    EXPECT_FALSE(is_exiting(-1));
}

TEST(KillLimit, GrowsWithTheJob) {
    EXPECT_EQ(kill_limit(1), std::chrono::milliseconds(3020));
    EXPECT_EQ(kill_limit(1024), std::chrono::milliseconds(23480));
    EXPECT_EQ(kill_limit(1 << 20), std::chrono::milliseconds(60000));
}

}  // namespace

}  // namespace npushmem::run
