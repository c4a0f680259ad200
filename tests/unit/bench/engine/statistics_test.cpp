// SPDX-License-Identifier: BSD-3-Clause
#include "bench/engine/statistics.hpp"

#include <gmock/gmock.h>

namespace npushmem::bench {
namespace {

using testing::ElementsAre;
using testing::IsEmpty;

TEST(Summarise, NoSamplesGiveZeros) {
    const Summary none = summarise({});
    EXPECT_EQ(none.count, 0U);
    EXPECT_EQ(none.median, 0);
    EXPECT_EQ(none.mad, 0);
    EXPECT_EQ(none.p90, 0);
}

TEST(Summarise, OneSampleIsMedianAndPercentiles) {
    const Summary one = summarise({7.5});
    EXPECT_EQ(one.count, 1U);
    EXPECT_EQ(one.median, 7.5);
    EXPECT_EQ(one.mad, 0);
    EXPECT_EQ(one.p10, 7.5);
    EXPECT_EQ(one.p90, 7.5);
    EXPECT_EQ(one.min, 7.5);
}

TEST(Summarise, OrderOfTheSamplesDoesNotMatter) {
    const Summary summary = summarise({5, 1, 4, 2, 3});
    EXPECT_EQ(summary.median, 3);
    EXPECT_EQ(summary.mad, 1);  // distances 2 1 0 1 2
    EXPECT_EQ(summary.min, 1);
}

TEST(Summarise, AnEvenCountTakesTheMiddleOfTwo) {
    EXPECT_DOUBLE_EQ(summarise({1, 2, 3, 10}).median, 2.5);
    EXPECT_DOUBLE_EQ(summarise({1, 2, 3, 10}).mad, 1);  // distances 0.5 0.5 1.5 7.5
}

TEST(Summarise, PercentilesInterpolate) {
    const Summary summary = summarise({0, 10, 20, 30, 40, 50, 60, 70, 80, 90, 100});
    EXPECT_DOUBLE_EQ(summary.p10, 10);
    EXPECT_DOUBLE_EQ(summary.p90, 90);
    const Summary two = summarise({0, 1});
    EXPECT_DOUBLE_EQ(two.p10, 0.1);
    EXPECT_DOUBLE_EQ(two.p90, 0.9);
}

TEST(Summarise, OneDisturbedSampleMovesNeitherMedianNorMad) {
    const Summary summary = summarise({10, 10, 11, 9, 10, 10, 1e9});
    EXPECT_EQ(summary.median, 10);
    EXPECT_EQ(summary.mad, 0);
}

TEST(PairedRatios, PairsByRound) {
    const std::vector<double> over{2, 9, 8};
    const std::vector<double> under{1, 3, 4};
    EXPECT_THAT(paired_ratios(over, under), ElementsAre(2, 3, 2));
}

TEST(PairedRatios, OmitsRoundsWithoutADivisor) {
    const std::vector<double> over{2, 9, 8};
    const std::vector<double> under{0, 3};
    EXPECT_THAT(paired_ratios(over, under), ElementsAre(3));
    EXPECT_THAT(paired_ratios({}, under), IsEmpty());
}

}  // namespace
}  // namespace npushmem::bench
