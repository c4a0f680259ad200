#include "topology/policy_balanced.hpp"

#include <gmock/gmock.h>

#include <algorithm>
#include <array>
#include <map>
#include <tuple>

#include "tests/fakes/cost_tables.hpp"

namespace npushmem::topology {
namespace {

using ::testing::ElementsAre;
using ::testing::IsEmpty;

constexpr std::size_t no_limit = 1000;

// What an assignment of one rail per PE costs, the first difference deciding: classes of all PEs, the loads (users per
// rate) from the largest down, total rank.
using Cost = std::tuple<std::size_t, std::vector<std::uint64_t>, std::size_t>;

constexpr std::uint64_t multiple_of_all_rates = 400 * 3;

Cost cost_of(const CostTable& table, const std::vector<std::uint64_t>& rates,
             const std::vector<std::size_t>& rail_of_pe) {
    std::vector<std::uint64_t> users(table.front().size(), 0);
    std::size_t classes = 0;
    std::size_t ranks = 0;
    std::vector<std::uint64_t> loads;
    for (std::size_t pe = 0; pe < rail_of_pe.size(); ++pe) {
        const std::size_t rail = rail_of_pe[pe];
        classes += static_cast<std::size_t>(table[pe][rail].distance_class);
        ranks += table[pe][rail].rank;
        // Every PE counts with the load at which it arrives, so that equal vectors mean equally even ways.
        loads.push_back(++users[rail] * multiple_of_all_rates / rates[rail]);
    }
    std::sort(loads.rbegin(), loads.rend());
    return {classes, loads, ranks};
}

// Tries every assignment, like counting in base `rails`.
Cost cheapest(const CostTable& table, const std::vector<std::uint64_t>& rates) {
    const std::size_t rails = table.front().size();
    std::vector<std::size_t> trial(table.size(), 0);
    Cost best = cost_of(table, rates, trial);
    for (;;) {
        std::size_t digit = 0;
        while (digit < trial.size() && ++trial[digit] == rails) trial[digit++] = 0;
        if (digit == trial.size()) return best;
        best = std::min(best, cost_of(table, rates, trial));
    }
}

Choice choose(const CostTable& table, std::size_t max_per_pe) {
    return choose_balanced(table, max_per_pe, Bins::of(table.empty() ? 0 : table.front().size()));
}

std::vector<std::uint64_t> random_rates(std::mt19937& random, std::size_t rails) {
    constexpr std::array<std::uint64_t, 4> all{100, 200, 300, 400};
    std::vector<std::uint64_t> rates;
    for (std::size_t i = 0; i < rails; ++i) rates.push_back(all.at(random() % all.size()));
    return rates;
}

std::vector<std::size_t> first_users(const Choice& choice) {
    std::vector<std::size_t> out;
    for (const auto& rails : choice) out.push_back(rails.front());
    return out;
}

class ChooseBalancedBruteForce : public ::testing::TestWithParam<bool> {};

TEST_P(ChooseBalancedBruteForce, FindsNothingBetterUpToFiveByFive) {
    std::mt19937 random(20240607);
    for (std::size_t pes = 1; pes <= 5; ++pes) {
        for (std::size_t rails = 1; rails <= 5; ++rails) {
            for (int round = 0; round < 40; ++round) {
                const auto table = random_table(random, pes, rails);
                const auto rates = GetParam() ? random_rates(random, rails) : std::vector<std::uint64_t>(rails, 100);
                const auto choice = choose_balanced(table, 1, {std::vector<std::size_t>(rails, 0), rates, {}});
                ASSERT_EQ(cost_of(table, rates, first_users(choice)), cheapest(table, rates))
                    << pes << " PEs, " << rails << " rails, round " << round;
            }
        }
    }
}

INSTANTIATE_TEST_SUITE_P(EvenAndUnevenRates, ChooseBalancedBruteForce, ::testing::Bool());

TEST(ChooseBalanced, WeighsLoadByRate) {
    const auto table = table_of_classes(std::vector<std::vector<int>>(3, {0, 0}));
    EXPECT_THAT(choose_balanced(table, 1, {{0, 0}, {200, 100}, {}}),
                ElementsAre(ElementsAre(0), ElementsAre(0), ElementsAre(1)));
}

TEST(ChooseBalanced, AvoidsRailsThatOthersUse) {
    const auto table = table_of_classes({{0, 0, 2}});
    EXPECT_THAT(choose_balanced(table, no_limit, {{1, 0, 0}, {}, {}}), ElementsAre(ElementsAre(1)));
}

TEST(ChooseBalanced, MovesEarlierPesOnWhenALaterOneNeedsTheirRail) {
    // PE 0 could use either rail; PE 1 only the first. Whoever takes the first for PE 0 must let go of it.
    EXPECT_THAT(choose(table_of_classes({{0, 0}, {0, 2}}), 1), ElementsAre(ElementsAre(1), ElementsAre(0)));
}

TEST(ChooseBalanced, NeverTakesAWorseClassForTheSakeOfLoad) {
    EXPECT_THAT(choose(table_of_classes({{0, 1}, {0, 1}, {0, 1}}), 1),
                ElementsAre(ElementsAre(0), ElementsAre(0), ElementsAre(0)));
}

TEST(ChooseBalanced, SpreadsEquallyNearRailsWithinOne) {
    for (std::size_t pes = 1; pes <= 20; ++pes) {
        const auto choice = choose(table_of_classes(std::vector<std::vector<int>>(pes, {2, 2, 2})), 1);
        std::vector<std::size_t> load(3, 0);
        for (const auto& rails : choice) ++load[rails.front()];
        const auto [min, max] = std::minmax_element(load.begin(), load.end());
        EXPECT_LE(*max - *min, 1u) << pes << " PEs";
    }
}

TEST(ChooseBalanced, UsesAllRailsWhenThereAreMoreThanPes) {
    EXPECT_THAT(choose(table_of_classes({{0, 0, 2, 2}, {2, 2, 0, 0}}), no_limit),
                ElementsAre(ElementsAre(0, 1), ElementsAre(2, 3)));
}

TEST(ChooseBalanced, SpreadsLeftOverRailsEvenly) {
    // Rail 2 is as near to both PEs, rail 3 to PE 0 alone: the even way gives rail 2 to PE 1.
    EXPECT_THAT(choose(table_of_classes({{0, 1, 0, 0}, {1, 0, 0, 1}}), no_limit),
                ElementsAre(ElementsAre(0, 3), ElementsAre(1, 2)));
}

TEST(ChooseBalanced, LeavesRailsOutsideOfEveryNearestClassUnused) {
    EXPECT_THAT(choose(table_of_classes({{0, 1, 4}}), no_limit), ElementsAre(ElementsAre(0)));
    // Rail 1 is the nearest of PE 1, in the class of which PE 0 has a nearer one.
    EXPECT_THAT(choose(table_of_classes({{0, 2, 2}, {4, 2, 2}}), no_limit),
                ElementsAre(ElementsAre(0), ElementsAre(1, 2)));
    EXPECT_THAT(choose(table_of_classes({{4, 4}}), no_limit), ElementsAre(ElementsAre(0, 1)));
    std::mt19937 random(23);
    for (int round = 0; round < 300; ++round) {
        const auto table = random_table(random, 3, 9);
        const auto choice = choose(table, no_limit);
        for (std::size_t pe = 0; pe < choice.size(); ++pe)
            for (const std::size_t rail : choice[pe])
                EXPECT_EQ(table[pe][rail].distance_class, nearest_class(table[pe])) << "round " << round;
    }
}

TEST(ChooseBalanced, RespectsWhatATransportCanDrive) {
    EXPECT_THAT(choose(table_of_classes({{0, 0, 0, 0, 0}}), 2), ElementsAre(ElementsAre(0, 1)));
    EXPECT_THAT(choose(table_of_classes({{0, 0}}), 1), ElementsAre(ElementsAre(0)));
}

TEST(ChooseBalanced, LeavesNoRailIdleBesideACrowdedEqual) {
    std::mt19937 random(7);
    for (int round = 0; round < 300; ++round) {
        const auto table = random_table(random, 6, 4);
        const auto rails = first_users(choose(table, 1));
        std::map<std::size_t, std::size_t> load;
        for (const auto rail : rails) ++load[rail];
        for (std::size_t pe = 0; pe < rails.size(); ++pe) {
            for (std::size_t other = 0; other < 4; ++other) {
                const bool equal = table[pe][other].distance_class == table[pe][rails[pe]].distance_class;
                EXPECT_FALSE(equal && load[other] + 1 < load[rails[pe]]) << "round " << round << ", PE " << pe;
            }
        }
    }
}

TEST(ChooseBalanced, AcceptsNothing) {
    EXPECT_THAT(choose({}, 1), IsEmpty());
    EXPECT_THAT(choose(CostTable(2), 1), ElementsAre(IsEmpty(), IsEmpty()));
}

}  // namespace
}  // namespace npushmem::topology
