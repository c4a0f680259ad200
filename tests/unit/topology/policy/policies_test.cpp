// SPDX-License-Identifier: BSD-3-Clause
#include "topology/policy/policies.hpp"

#include <gmock/gmock.h>

#include <algorithm>
#include <array>
#include <map>
#include <set>
#include <tuple>

#include "tests/fakes/machine_builder.hpp"
#include "tests/fakes/topologies.hpp"
#include "topology/policy/assign.hpp"

namespace npushmem::topology {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;

TEST(ParsePolicy, ParsesEveryPolicyName) {
    for (const auto policy : {Policy::balanced, Policy::nearest, Policy::exclusive, Policy::round_robin, Policy::list})
        EXPECT_EQ(parse_policy(name_of(policy)).value(), policy);
    EXPECT_EQ(parse_policy("round_robin").value(), Policy::round_robin);
}

TEST(ParsePolicy, ErrorsListTheNames) {
    const auto policy = parse_policy("fastest");
    ASSERT_FALSE(policy.ok());
    EXPECT_EQ(policy.status().code(), Code::config);
    EXPECT_THAT(policy.status().message(), HasSubstr("choose balanced, nearest, exclusive, round_robin or list"));
}

constexpr std::size_t no_limit = 1000;

// The cost of an assignment of one rail per PE, compared from the left: classes of all PEs, the loads (users per rate)
// from the largest down, total rank.
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
        // Every PE counts with the load when it is placed, so equal vectors mean equally even placements.
        loads.push_back(++users[rail] * multiple_of_all_rates / rates[rail]);
    }
    std::sort(loads.rbegin(), loads.rend());
    return {classes, loads, ranks};
}

// Tries every assignment, as a number in base `rails`.
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
    // PE 0 can use both rails, PE 1 only the first. A placement of PE 0 on the first rail must move.
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

constexpr std::size_t any_number = 1000;

Choice choose(const CostTable& costs, const std::vector<std::uint32_t>& devices, std::size_t max_per_pe = 1) {
    return choose_exclusive(costs, devices, max_per_pe, Bins::of(costs.front().size()));
}

TEST(ChooseExclusive, GivesADeviceAFartherNicRatherThanASharedOne) {
    EXPECT_THAT(choose(table_of_classes({{0, 4}, {0, 4}}), {0, 1}), ElementsAre(ElementsAre(0), ElementsAre(1)));
}

TEST(ChooseExclusive, LetsPesOfOneDeviceShare) {
    EXPECT_THAT(choose(table_of_classes({{0, 4}, {0, 4}, {4, 0}}), {0, 0, 1}),
                ElementsAre(ElementsAre(0), ElementsAre(0), ElementsAre(1)));
}

TEST(ChooseExclusive, DistributesUnusedNics) {
    EXPECT_THAT(choose(table_of_classes({{0, 0, 4, 4}, {4, 4, 0, 0}}), {0, 1}, any_number),
                ElementsAre(ElementsAre(0, 1), ElementsAre(2, 3)));
}

TEST(ChooseExclusive, LeavesNicsOfOthersAlone) {
    const auto costs = table_of_classes({{0, 1, 1}});
    const std::vector<std::uint32_t> devices{7};
    EXPECT_THAT(choose_exclusive(costs, devices, any_number, {{1, 0, 0}, {}, {}}), ElementsAre(ElementsAre(1, 2)));
}

TEST(ChooseExclusive, IsEmptyIfThereAreTooFewNics) {
    EXPECT_THAT(choose(table_of_classes({{0}, {0}}), {0, 1}), IsEmpty());
}

// NVSHMEM's two passes as its source describes them, over one sorted list of all pairs, with places that are free
// (-1) or closed (-2). Slow and literal, to compare with.
class NvshmemPasses {
public:
    NvshmemPasses(const CostTable& costs, std::size_t places)
        : costs_(costs), place_of_(costs.size(), std::vector<int>(places, free)), users_(costs.front().size(), 0) {
        for (std::size_t pe = 0; pe < costs.size(); ++pe)
            for (std::size_t rail = 0; rail < users_.size(); ++rail) pairs_.push_back({pe, rail});
        std::stable_sort(pairs_.begin(), pairs_.end(), [&](const Pair& a, const Pair& b) {
            return costs_[a.pe][a.rail].distance_class < costs_[b.pe][b.rail].distance_class;
        });
    }

    Choice run() {
        for (const Pair& pair : pairs_) fill(pair);
        for (std::size_t pe = 0; pe < place_of_.size(); ++pe)
            for (int& place : place_of_[pe]) balance(pe, place);
        Choice out;
        for (const auto& places : place_of_) {
            auto& rails = out.emplace_back();
            for (const int place : places) {
                const auto rail = static_cast<std::size_t>(place);
                if (place >= 0 && std::find(rails.begin(), rails.end(), rail) == rails.end()) rails.push_back(rail);
            }
        }
        return out;
    }

private:
    static constexpr int free = -1;
    static constexpr int closed = -2;
    struct Pair {
        std::size_t pe;
        std::size_t rail;
    };

    int bandwidth(std::size_t pe, std::size_t rail) const {
        constexpr std::array<int, 5> of_class{4, 4, 3, 2, 1};  // PIX, PXB, PHB, NODE, SYS
        return of_class.at(static_cast<std::size_t>(costs_[pe][rail].distance_class));
    }

    void fill(const Pair& pair) {
        auto& places = place_of_[pair.pe];
        const auto open = std::find(places.begin(), places.end(), free);
        if (open == places.end()) return;
        const bool worse = open != places.begin() &&
                           bandwidth(pair.pe, pair.rail) < bandwidth(pair.pe, static_cast<std::size_t>(places.front()));
        if (worse) {
            std::fill(open, places.end(), closed);
            return;
        }
        *open = static_cast<int>(pair.rail);
        ++users_[pair.rail];
    }

    void balance(std::size_t pe, int& place) {
        if (place < 0 || users_[static_cast<std::size_t>(place)] < 2) return;
        for (const Pair& pair : pairs_) {
            if (pair.pe != pe) continue;
            const auto present = static_cast<std::size_t>(place);
            if (bandwidth(pe, pair.rail) < bandwidth(pe, present)) return;
            if (users_[present] - users_[pair.rail] < 2) continue;
            --users_[present];
            ++users_[pair.rail];
            place = static_cast<int>(pair.rail);
            if (users_[pair.rail] < 2) return;
        }
    }

    const CostTable& costs_;
    std::vector<Pair> pairs_;
    std::vector<std::vector<int>> place_of_;
    std::vector<int> users_;
};

CostTable random_classes(std::mt19937& random, std::size_t pes, std::size_t rails) {
    const std::size_t classes = 1 + random() % 5;
    std::vector<std::vector<int>> table(pes, std::vector<int>(rails));
    for (auto& row : table)
        for (int& entry : row) entry = static_cast<int>(random() % classes);
    return table_of_classes(table);
}

TEST(ChooseNearest, IsNvshmemsOnRandomTables) {
    std::mt19937 random(11);
    for (int round = 0; round < 4000; ++round) {
        const std::size_t pes = 1 + random() % 16;
        const std::size_t rails = 1 + random() % 24;
        const auto table = random_classes(random, pes, rails);
        const std::size_t places = std::max<std::size_t>(1, rails / pes);
        ASSERT_EQ(choose_nearest(table, 1000), NvshmemPasses(table, places).run()) << pes << " PEs, " << rails;
        ASSERT_EQ(choose_nearest(table, 1), NvshmemPasses(table, 1).run()) << pes << " PEs, " << rails;
    }
}

// Includes all steps before the algorithm: the order of PEs and NICs, ports that are down.
TEST(ChooseNearest, IsNvshmemsOnEveryMachine) {
    for (const char* name : {"atlas-800-a2", "cascaded-switches", "dgx-a100", "dgx-h100", "dgx-h100-port-failed",
                             "flat-vm", "hgx-4-nics", "mixed-speeds", "network-only", "nics-on-one-socket", "one-nic",
                             "port-down", "sixteen-accelerators", "switch-pairs"}) {
        const auto machine = machine_from(name);
        for (std::size_t pes = 1; pes <= 20; ++pes) {
            AssignmentRequest request;
            request.pes = place_emulated(machine, pes);
            request.rails = rails_of(machine);
            std::erase_if(request.rails, [](const Rail& rail) { return rail.state == PortState::down; });
            request.policy = Policy::nearest;
            std::vector<std::vector<Distance>> distances;
            for (const auto& pe : request.pes) {
                auto& row = distances.emplace_back();
                for (const auto& rail : request.rails) row.push_back(distance(machine, pe.location, rail.location));
            }
            const auto table = rank_distances(distances);
            const auto expected = NvshmemPasses(table, std::max<std::size_t>(1, request.rails.size() / pes)).run();
            const auto assignment = assign(machine, request);
            ASSERT_TRUE(assignment.ok()) << assignment.status().message();
            Choice found;
            for (const auto& pe : assignment.value().pes) {
                auto& rails = found.emplace_back();
                for (const auto& nic : pe.nics) rails.push_back(nic.rail);
            }
            EXPECT_EQ(found, expected) << name << ", " << pes << " PEs";
        }
    }
}

TEST(ChooseNearest, MovesPesOffACrowdedRailOntoAnEqual) {
    EXPECT_THAT(choose_nearest(table_of_classes({{0, 0}, {0, 0}}), 1), ElementsAre(ElementsAre(1), ElementsAre(0)));
}

TEST(ChooseNearest, NeverMovesToAWorseClass) {
    EXPECT_THAT(choose_nearest(table_of_classes({{0, 2}, {0, 2}}), 1), ElementsAre(ElementsAre(0), ElementsAre(0)));
}

TEST(ChooseNearest, TakesOneSwitchForAsNearAsSeveral) {
    EXPECT_THAT(choose_nearest(table_of_classes({{0, 1}, {0, 1}}), 1), ElementsAre(ElementsAre(1), ElementsAre(0)));
}

TEST(ChooseNearest, AssignsOnlyRailsOfTheNearestClass) {
    EXPECT_THAT(choose_nearest(table_of_classes({{0, 0, 2, 2}, {2, 2, 0, 0}}), 8),
                ElementsAre(ElementsAre(0, 1), ElementsAre(2, 3)));
    EXPECT_THAT(choose_nearest(table_of_classes({{0, 0, 2, 2}, {2, 2, 0, 0}}), 1),
                ElementsAre(ElementsAre(0), ElementsAre(2)));
    EXPECT_THAT(choose_nearest(table_of_classes({{0, 2, 2, 4}}), 8), ElementsAre(ElementsAre(0)));
}

TEST(ChooseNearest, ListsARailThatAPeHasTwiceOnce) {
    std::mt19937 random(12);
    for (int round = 0; round < 500; ++round)
        for (const auto& rails : choose_nearest(random_table(random, 4, 9), 9))
            EXPECT_EQ(std::set<std::size_t>(rails.begin(), rails.end()).size(), rails.size());
}

TEST(ChooseNearest, AcceptsNothing) {
    EXPECT_THAT(choose_nearest({}, 1), IsEmpty());
    EXPECT_THAT(choose_nearest(CostTable(1), 1), ElementsAre(IsEmpty()));
}

}  // namespace
}  // namespace npushmem::topology
