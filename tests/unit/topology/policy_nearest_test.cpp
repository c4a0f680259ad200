#include "topology/policy_nearest.hpp"

#include <gmock/gmock.h>

#include <set>

#include "tests/fakes/cost_tables.hpp"

namespace npushmem::topology {
namespace {

using ::testing::ElementsAre;
using ::testing::IsEmpty;

TEST(ChooseNearest, MovesPesOffACrowdedRailOntoAnEqual) {
    EXPECT_THAT(choose_nearest(table_of_classes({{0, 0}, {0, 0}}), 1), ElementsAre(ElementsAre(1), ElementsAre(0)));
}

TEST(ChooseNearest, NeverMovesToAWorseClass) {
    EXPECT_THAT(choose_nearest(table_of_classes({{0, 1}, {0, 1}}), 1), ElementsAre(ElementsAre(0), ElementsAre(0)));
}

TEST(ChooseNearest, GivesEachPeItsShareOfManyRails) {
    EXPECT_THAT(choose_nearest(table_of_classes({{0, 0, 2, 2}, {2, 2, 0, 0}}), 8),
                ElementsAre(ElementsAre(0, 1), ElementsAre(2, 3)));
    EXPECT_THAT(choose_nearest(table_of_classes({{0, 0, 2, 2}, {2, 2, 0, 0}}), 1),
                ElementsAre(ElementsAre(0), ElementsAre(2)));
}

TEST(ChooseNearest, NeverGivesAPeOneRailTwice) {
    std::mt19937 random(11);
    for (int round = 0; round < 200; ++round) {
        for (const auto& rails : choose_nearest(random_table(random, 4, 9), 9)) {
            EXPECT_EQ(std::set<std::size_t>(rails.begin(), rails.end()).size(), rails.size());
        }
    }
}

TEST(ChooseNearest, AcceptsNothing) {
    EXPECT_THAT(choose_nearest({}, 1), IsEmpty());
    EXPECT_THAT(choose_nearest(CostTable(1), 1), ElementsAre(IsEmpty()));
}

}  // namespace
}  // namespace npushmem::topology
