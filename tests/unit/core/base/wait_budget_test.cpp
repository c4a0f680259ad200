// SPDX-License-Identifier: BSD-3-Clause
#include "core/base/wait_budget.hpp"

#include <gmock/gmock.h>

namespace npushmem {
namespace {

using ::testing::HasSubstr;
using namespace std::chrono_literals;

TEST(WaitBudget, SpinsOnlyWhenEveryPeHasACore) {
    EXPECT_GT(choose_wait_budget({.cores = 2, .pes = 2}).spin_for, 1us);
    EXPECT_LE(choose_wait_budget({.cores = 2, .pes = 2}).spin_for, 20us);
    EXPECT_GT(choose_wait_budget({.cores = 64, .pes = 8}).polls, 10U);
    EXPECT_EQ(choose_wait_budget({.cores = 2, .pes = 3}).spin_for, 0us);
    EXPECT_EQ(choose_wait_budget({.cores = 2, .pes = 3}).polls, 0U);
    EXPECT_EQ(choose_wait_budget({.cores = 1.5, .pes = 2}).polls, 0U);
}

TEST(WaitBudget, YieldsForAsLongAsABarrierTakes) {
    for (const int pes : {2, 4, 8, 16, 32, 64}) {
        const auto budget = choose_wait_budget({.cores = 2, .pes = pes});
        EXPECT_GE(budget.yield_for, pes * 5us) << pes;
        EXPECT_LE(budget.yield_for, 2ms) << pes;
    }
}

TEST(WaitBudget, SleepsAtOnceWhereABarrierTakesLongerThanTheLongestYields) {
    EXPECT_EQ(choose_wait_budget({.cores = 2, .pes = 80}).yield_for, 2ms);
    EXPECT_EQ(choose_wait_budget({.cores = 2, .pes = 82}).yield_for, 0ms);
    EXPECT_EQ(choose_wait_budget({.cores = 2, .pes = 100000}).yield_for, 0ms);
}

TEST(WaitBudget, ChecksLessOftenWhereManyPesShareACore) {
    const auto first_check = [](int pes) { return choose_wait_budget({.cores = 2, .pes = pes}).first_check; };
    const auto longest_check = [](int pes) { return choose_wait_budget({.cores = 2, .pes = pes}).longest_check; };
    EXPECT_EQ(first_check(1), 10ms);
    EXPECT_EQ(first_check(8), 10ms);
    EXPECT_EQ(longest_check(8), 250ms);
    EXPECT_EQ(first_check(64), 80ms);
    EXPECT_EQ(longest_check(64), 2s);
    EXPECT_EQ(first_check(100000), 2s);
    EXPECT_EQ(longest_check(100000), 2s);
}

TEST(WaitBudget, DescribesItsReason) {
    const HostOccupancy share{.cores = 1.5, .pes = 8};
    EXPECT_THAT(describe(share, choose_wait_budget(share)), HasSubstr("8 PEs on 1.5 usable cores: poll 0 times"));
}

}  // namespace
}  // namespace npushmem
