#include "topology/bins.hpp"

#include <gtest/gtest.h>

namespace npushmem::topology {
namespace {

TEST(LoadCosts, GrowWithItemsPerRate) {
    const LoadCosts costs({{0, 0}, {200, 100}, {}}, 4);
    EXPECT_LT(costs.of(0, 1), costs.of(1, 1));
    EXPECT_EQ(costs.of(0, 2), costs.of(1, 1));
    EXPECT_EQ(costs.of(0, 4), costs.of(1, 2));
    EXPECT_GT(costs.of(1, 2), costs.of(0, 3));
}

TEST(LoadCosts, CompareExactly) {
    // A third and two sixths, in bits per second: doubles would be enough here, and are not for every pair.
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

TEST(LoadCosts, CountWhatIsThereAlready) {
    const LoadCosts costs({{5, 0}, {}, {}}, 2);
    EXPECT_LT(costs.of(1, 2), costs.of(0, 6));
    EXPECT_LT(costs.of(0, 6), costs.of(0, 7));
}

}  // namespace
}  // namespace npushmem::topology
