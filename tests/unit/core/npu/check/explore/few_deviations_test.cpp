// SPDX-License-Identifier: BSD-3-Clause
#include "core/npu/check/explore/few_deviations.hpp"

#include <gtest/gtest.h>

#include <map>

namespace npushmem::npu::check::explore {
namespace {

using Order = std::vector<ThreadId>;

// Threads with this many steps each, none of which waits.
Order run(const std::vector<int>& lengths, Decisions& decisions) {
    std::vector<int> left = lengths;
    Order order;
    ThreadId last = -1;
    for (;;) {
        std::vector<ThreadId> enabled;
        for (std::size_t i = 0; i < left.size(); ++i)
            if (left[i] > 0) enabled.push_back(static_cast<ThreadId>(i));
        if (enabled.empty()) return order;
        last = decisions.choose(enabled, last);
        --left[static_cast<std::size_t>(last)];
        order.push_back(last);
    }
}

std::map<Order, int> runs_of(std::size_t max, const std::vector<int>& lengths) {
    std::map<Order, int> runs;
    FewDeviations few(max);
    while (few.next_run()) ++runs[run(lengths, few)];
    return runs;
}

TEST(FewDeviations, NoneIsTheDefaultOrder) { EXPECT_EQ(runs_of(0, {2, 2}), (std::map<Order, int>{{{0, 0, 1, 1}, 1}})); }

TEST(FewDeviations, OneRunsEachOtherThreadAtEachStepOnce) {
    const std::map<Order, int> runs = runs_of(1, {2, 2});
    const std::map<Order, int> expected{{{0, 0, 1, 1}, 1}, {{1, 1, 0, 0}, 1}, {{0, 1, 1, 0}, 1}};
    EXPECT_EQ(runs, expected);
}

TEST(FewDeviations, EnoughOfThemRunEveryOrderOnce) {
    const std::map<Order, int> runs = runs_of(6, {2, 2, 2});
    EXPECT_EQ(runs.size(), 90U);  // 6! / (2! 2! 2!)
    for (const auto& [order, times] : runs) EXPECT_EQ(times, 1);
}

TEST(FewDeviations, NoticesOtherThreadsInAnotherRun) {
    FewDeviations few(2);
    ASSERT_TRUE(few.next_run());
    run({2, 2}, few);
    EXPECT_FALSE(few.diverged());
    ASSERT_TRUE(few.next_run());
    run({2}, few);
    EXPECT_TRUE(few.diverged());
    EXPECT_FALSE(few.next_run());
}

TEST(Replay, RepeatsARunAndLeavesOutWhatCannotRun) {
    Replay replay({{0, 1}, {1, 2}});
    EXPECT_EQ(run({2, 1, 2}, replay), (Order{1, 2, 2, 0, 0}));
    Replay impossible({{1, 7}});
    EXPECT_EQ(run({2, 1}, impossible), (Order{0, 0, 1}));
}

TEST(Deviations, TextIsParsedAgain) {
    const std::vector<Deviation> all{{3, 1}, {17, 0}, {400, 12}};
    EXPECT_EQ(text_of(all), "3=1,17=0,400=12");
    EXPECT_EQ(parse_deviations(text_of(all)), all);
    EXPECT_EQ(parse_deviations(""), std::vector<Deviation>{});
    for (const char* text : {"x", "3", "3=", "=1", "3=1,", "3=1,2=1", "3=1,3=2", "3=1 4=1", "3=-1", ","})
        EXPECT_FALSE(parse_deviations(text)) << text;
}

}  // namespace
}  // namespace npushmem::npu::check::explore
