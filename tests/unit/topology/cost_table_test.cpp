#include "topology/cost_table.hpp"

#include <gmock/gmock.h>

#include "tests/fakes/cost_tables.hpp"

namespace npushmem::topology {
namespace {

TEST(RankDistances, RanksEqualDistancesEqually) {
    const Distance near{DistanceClass::pix, 200, 10};
    const Distance slower{DistanceClass::pix, 100, 10};
    const Distance far{DistanceClass::sys, 400, 21};
    const auto table = rank_distances({{far, near}, {slower, near}});
    EXPECT_EQ(table[0][0].rank, 2u);
    EXPECT_EQ(table[0][1].rank, 0u);
    EXPECT_EQ(table[1][0].rank, 1u);
    EXPECT_EQ(table[1][1].rank, 0u);
    EXPECT_EQ(table[0][0].distance_class, DistanceClass::sys);
}

TEST(NearestClass, IsTheBestOfTheRow) {
    EXPECT_EQ(nearest_class(table_of_classes({{3, 1, 4}})[0]), DistanceClass::pxb);
    EXPECT_EQ(nearest_class({}), DistanceClass::sys);
}

}  // namespace
}  // namespace npushmem::topology
