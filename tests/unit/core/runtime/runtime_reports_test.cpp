// SPDX-License-Identifier: BSD-3-Clause
#include "core/runtime/runtime_reports.hpp"

#include <gmock/gmock.h>

namespace npushmem {
namespace {

using ::testing::ContainsRegex;
using ::testing::HasSubstr;
using ::testing::Not;

TEST(StatisticsReport, IsReadAsItWasPublished) {
    WaitCounters waits;
    waits.waits = 1, waits.time = 14, waits.spins = 2, waits.yields = 3, waits.sleeps = 4, waits.parks = 5,
    waits.liveness_checks = 6, waits.wakes = 7;
    BarrierCounters counts{};
    counts.barriers = 8, counts.timed = 9, counts.nanoseconds = 10, counts.longest = 11, counts.entered_last = 12,
    counts.late_nanoseconds = 13;
    publish(waits, counts);
    const PeStatistics expected{8, 9, 10, 11, 12, 13, 1, 14, 2, 3, 4, 5, 6, 7};
    EXPECT_EQ(read_statistics(counts), expected);
}

TEST(StatisticsReport, HasALineForEachPeAndTheSum) {
    PeStatistics one{.barriers = 32, .timed = 2, .nanoseconds = 5000, .longest = 3000};
    PeStatistics other{
        .barriers = 32, .timed = 2, .nanoseconds = 1000, .longest = 600, .last = 2, .late_nanoseconds = 800};
    const std::string text = describe_statistics({one, other}, 16);
    EXPECT_THAT(text, HasSubstr("2 PEs; one barrier in 16 was timed"));
    EXPECT_THAT(text, ContainsRegex("\n +0 +32 +2.50 +3.0 +0 +0.00 "));
    EXPECT_THAT(text, ContainsRegex("\n +1 +32 +0.50 +0.6 +2 +0.40 "));
    EXPECT_THAT(text, ContainsRegex("\n +all +64 +1.50 +3.0 +2 +0.40 "));
}

TEST(StatisticsReport, ReportsThatLastArrivalsAreUnknown) {
    std::vector<PeStatistics> pes(2);
    pes[0].timed = pes[1].timed = 3;
    EXPECT_THAT(describe_statistics(pes, 1), HasSubstr("last arrivals are unknown"));
    pes[1].last = 3;
    EXPECT_THAT(describe_statistics(pes, 1), Not(HasSubstr("last arrivals are unknown")));
}

TEST(StatisticsReport, ListsThePesOfAManyPeJobThatArrivedLastMostOften) {
    std::vector<PeStatistics> pes(20);
    pes[17].last = 5;
    pes[3].last = 9;
    const std::string text = describe_statistics(pes, 1, 2);
    EXPECT_THAT(text, HasSubstr("the 2 that arrived last most often"));
    EXPECT_THAT(text, ContainsRegex("\n +3 .*\n +17 .*\n +all "));
    EXPECT_THAT(text, Not(ContainsRegex("\n +0 ")));
}

}  // namespace
}  // namespace npushmem
