// SPDX-License-Identifier: BSD-3-Clause
#include "topology/policy/min_cost_flow.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>

#include "tests/fakes/machine_builder.hpp"

namespace npushmem::topology {
namespace {

using ::testing::ElementsAre;
using ::testing::Eq;
using ::testing::Optional;

TEST(LoadCosts, GrowWithItemsPerRate) {
    const LoadCosts costs({{0, 0}, {200, 100}, {}}, 4);
    EXPECT_LT(costs.of(0, 1), costs.of(1, 1));
    EXPECT_EQ(costs.of(0, 2), costs.of(1, 1));
    EXPECT_EQ(costs.of(0, 4), costs.of(1, 2));
    EXPECT_GT(costs.of(1, 2), costs.of(0, 3));
}

TEST(LoadCosts, CompareExactly) {
    // A third and two sixths, in bits per second. Doubles are exact here, but not for every pair.
    const LoadCosts costs({{0, 0}, {300'000'000'000, 600'000'000'000}, {}}, 7);
    for (std::size_t items = 1; items <= 3; ++items) EXPECT_EQ(costs.of(0, items), costs.of(1, 2 * items));
    EXPECT_NE(costs.of(0, 3), costs.of(1, 7));
}

TEST(LoadCosts, TakeAnUnknownRateForTheSlowest) {
    const LoadCosts costs({{0, 0, 0}, {0, 100, 400}, {}}, 2);
    EXPECT_EQ(costs.of(0, 1), costs.of(1, 1));
    const LoadCosts none_known({{0, 0}, {0, 0}, {}}, 2);
    EXPECT_EQ(none_known.of(0, 2), none_known.of(1, 2));
}

TEST(LoadCosts, IncludeTheInitialLoad) {
    const LoadCosts costs({{5, 0}, {}, {}}, 2);
    EXPECT_LT(costs.of(1, 2), costs.of(0, 6));
    EXPECT_LT(costs.of(0, 6), costs.of(0, 7));
}

TEST(MinCostFlow, IncludesTheInitialLoadOfBins) {
    const auto table = table_of_classes({{0, 0}, {0, 0}, {0, 0}});
    EXPECT_THAT(MinCostFlow(table, Bins{{2, 0}, {}, {}, 100}).solve(),
                ElementsAre(Optional(1u), Optional(1u), Optional(0u)));
}

TEST(MinCostFlow, LeavesItemsOutWhenTheirBinsAreFull) {
    const auto table = table_of_classes({{0, 1}, {0, 1}});
    EXPECT_THAT(MinCostFlow(table, Bins{{0, 0}, {}, {}, 1}).solve(), ElementsAre(Optional(0u), Eq(std::nullopt)));
}

TEST(MinCostFlow, MakesRoomInFullBins) {
    const auto table = table_of_classes({{0, 0}, {0, 1}});
    EXPECT_THAT(MinCostFlow(table, Bins{{0, 0}, {}, {}, 1}).solve(), ElementsAre(Optional(1u), Optional(0u)));
}

TEST(MinCostFlow, GivesFastBinsMore) {
    const auto table = table_of_classes(std::vector<std::vector<int>>(6, {0, 0}));
    const auto bins = MinCostFlow(table, {{0, 0}, {400, 200}, {}}).solve();
    EXPECT_EQ(std::count(bins.begin(), bins.end(), std::optional<std::size_t>(0)), 4);
}

TEST(MinCostFlow, FollowsLongChains) {
    // Item i fits bins i and i+1, the last item only bin 0: all others must move by one.
    std::vector<std::vector<int>> classes;
    constexpr int items = 12;
    for (int i = 0; i < items - 1; ++i) {
        classes.emplace_back(items, 1);
        classes.back()[i] = classes.back()[i + 1] = 0;
    }
    classes.emplace_back(items, 1);
    classes.back()[0] = 0;
    const auto bins = MinCostFlow(table_of_classes(classes), {std::vector<std::size_t>(items, 0), {}, {}, 1}).solve();
    for (std::size_t i = 0; i + 1 < items; ++i) EXPECT_THAT(bins[i], Optional(i + 1));
    EXPECT_THAT(bins.back(), Optional(0u));
}

TEST(MinCostFlow, PrefersBetterPathsAmongEquallyBalancedSolutions) {
    const Distance slow{DistanceClass::pix, 100, 10};
    const Distance fast{DistanceClass::pix, 200, 10};
    const auto table = rank_distances({{fast, slow}, {fast, fast}});
    EXPECT_THAT(MinCostFlow(table, Bins::of(2)).solve(), ElementsAre(Optional(0u), Optional(1u)));
    const auto swapped = rank_distances({{fast, fast}, {fast, slow}});
    EXPECT_THAT(MinCostFlow(swapped, Bins::of(2)).solve(), ElementsAre(Optional(1u), Optional(0u)));
}

}  // namespace
}  // namespace npushmem::topology
