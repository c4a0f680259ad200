#include "topology/policy_nearest.hpp"

#include <gmock/gmock.h>

#include <algorithm>
#include <array>
#include <set>

#include "tests/fakes/cost_tables.hpp"
#include "tests/fakes/topologies.hpp"
#include "topology/assign.hpp"

namespace npushmem::topology {
namespace {

using ::testing::ElementsAre;
using ::testing::IsEmpty;

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

// Through everything that is between the user and the algorithm: the order of PEs and NICs, ports that are down.
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

TEST(ChooseNearest, GivesEachPeItsShareOfTheNearestOnly) {
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
