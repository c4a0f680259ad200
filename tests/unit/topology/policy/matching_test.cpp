// SPDX-License-Identifier: BSD-3-Clause
#include "topology/policy/matching.hpp"

#include <gmock/gmock.h>

#include <algorithm>
#include <array>
#include <numeric>
#include <set>

#include "tests/fakes/machine_builder.hpp"

namespace npushmem::topology {
namespace {

using ::testing::ElementsAre;
using ::testing::IsEmpty;

// Rows per class, the farthest first, then the total rank.
std::array<std::size_t, distance_class_count + 1> cost_of(const CostTable& table,
                                                          const std::vector<std::size_t>& columns) {
    std::array<std::size_t, distance_class_count + 1> cost{};
    for (std::size_t row = 0; row < table.size(); ++row) {
        const auto& entry = table[row][columns[row]];
        ++cost[distance_class_count - 1 - static_cast<std::size_t>(entry.distance_class)];
        cost.back() += entry.rank;
    }
    return cost;
}

TEST(CheapestMatching, IsAsCheapAsTheBestPermutation) {
    std::mt19937 random(5);
    for (int round = 0; round < 300; ++round) {
        const std::size_t rows = 1 + random() % 5;
        const std::size_t columns = rows + random() % 2;
        const auto table = random_table(random, rows, columns);
        const auto found = cheapest_matching(table);
        ASSERT_EQ(std::set<std::size_t>(found.begin(), found.end()).size(), rows) << "a column twice";
        std::vector<std::size_t> trial(columns);
        std::iota(trial.begin(), trial.end(), std::size_t{0});
        auto best = cost_of(table, trial);
        while (std::next_permutation(trial.begin(), trial.end())) best = std::min(best, cost_of(table, trial));
        ASSERT_EQ(cost_of(table, found), best) << "round " << round;
    }
}

TEST(CheapestMatching, PrefersTwoOfAMiddlingClassToOneOfTheFarthest) {
    EXPECT_THAT(cheapest_matching(table_of_classes({{0, 3}, {3, 4}})), ElementsAre(1, 0));
}

TEST(CheapestMatching, AcceptsNothing) { EXPECT_THAT(cheapest_matching({}), IsEmpty()); }

}  // namespace
}  // namespace npushmem::topology
