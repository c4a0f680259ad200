// SPDX-License-Identifier: BSD-3-Clause
#include "core/team/team_table.hpp"

#include <gmock/gmock.h>

#include <set>

#include "tests/unit/core/team/team_world.hpp"

namespace npushmem {
namespace {

using ::testing::AllOf;
using ::testing::HasSubstr;

// PEs start, start + stride, ... of a parent; its name, where this PE is a member.
Status split(TeamTable& table, Team& parent, int start, int stride, int count, TeamName& made,
             SplitArgumentRule rule = SplitArgumentRule::triplets) {
    const TeamSpec specs[] = {{parent.members().every(start, stride, count), 0}};
    return table.split(
        parent,
        {static_cast<std::uint64_t>(start), static_cast<std::uint64_t>(stride), static_cast<std::uint64_t>(count)},
        {rule}, specs, std::span(&made, 1));
}

TEST(TeamTable, HasThePredefinedTeams) {
    TeamWorld world(3);
    EXPECT_EQ(world.table(2).world().size(), 3);
    EXPECT_EQ(world.table(2).world().index(), 2);
    EXPECT_EQ(world.table(1).shared().members().text(), "PEs 0 to 2, every 1");
    EXPECT_EQ(world.table(0).find({}), nullptr);
    EXPECT_FALSE(world.table(0).existed({}));
    for (const int slot : {-1, 0, TeamTable::predefined_teams, 1 << 20})
        EXPECT_EQ(world.table(0).name_at(slot), TeamName{}) << slot;
}

// A name is never reused: the name of a destroyed team names nothing, though its slot serves another team.
TEST(TeamTable, ReusesSlotsButNotNames) {
    TeamWorld world(4);
    world.run([](TeamTable& table, int pe) {
        std::set<std::uint64_t> names;
        TeamName last;
        for (int round = 0; round < 1500; ++round) {
            TeamName made;
            const int count = 1 + round % 4;
            ASSERT_TRUE(split(table, table.world(), 0, 1, count, made).ok());
            ASSERT_EQ(made.value != 0, pe < count);
            if (pe >= count) continue;
            ASSERT_TRUE(names.insert(made.value).second);
            ASSERT_EQ(table.find(last), nullptr);
            ASSERT_EQ(last.value == 0, !table.existed(last));
            ASSERT_NE(table.find(made), nullptr);
            ASSERT_FALSE(table.existed(made));
            ASSERT_TRUE(table.find(made)->sync().ok());
            const int slot = TeamTable::slot_of(made);
            ASSERT_EQ(table.name_at(slot), made);
            ASSERT_TRUE(table.destroy(made).ok());
            ASSERT_EQ(table.name_at(slot), made);  // for a message; the table does not find it
            ASSERT_EQ(table.destroy(made).code(), Code::argument);
            last = made;
        }
        EXPECT_TRUE(names.empty() || names.size() >= 375);
    });
}

// Teams of teams of teams, all alive, each its parent without the last; then destroyed, the outer ones first.
TEST(TeamTable, TeamsNest) {
    TeamWorld world(5);
    world.run([](TeamTable& table, int pe) {
        for (int round = 0; round < 200; ++round) {
            std::vector<TeamName> names;
            Team* parent = &table.world();
            while (parent != nullptr && parent->size() > 1) {
                TeamName made;
                ASSERT_TRUE(split(table, *parent, 0, 1, parent->size() - 1, made).ok());
                if ((parent = table.find(made)) == nullptr) break;
                names.push_back(made);
                ASSERT_EQ(parent->index(), pe);
                ASSERT_TRUE(parent->sync().ok());
            }
            ASSERT_EQ(names.size(), static_cast<std::size_t>(4 - pe));
            for (const TeamName name : names) ASSERT_TRUE(table.destroy(name).ok());
        }
    });
}

// Neighbours in a row, each PE in two teams; both alive, used in turn.
TEST(TeamTable, TeamsOverlap) {
    TeamWorld world(4);
    world.run([](TeamTable& table, int) {
        for (int round = 0; round < 300; ++round) {
            std::vector<TeamName> names(3);
            for (int first = 0; first < 3; ++first)
                ASSERT_TRUE(split(table, table.world(), first, 1, 2, names[static_cast<std::size_t>(first)]).ok());
            std::erase(names, TeamName{});
            for (const TeamName name : names) ASSERT_TRUE(table.find(name)->sync().ok());
            for (const TeamName name : names) ASSERT_TRUE(table.destroy(name).ok());
        }
    });
}

TEST(TeamTable, FailsIfNoSlotIsFree) {
    TeamWorld world(2);
    world.run([](TeamTable& table, int) {
        std::vector<TeamName> names;
        Status done;
        for (TeamName made; (done = split(table, table.world(), 0, 1, 2, made)).ok();) names.push_back(made);
        EXPECT_EQ(done.code(), Code::memory);
        EXPECT_THAT(done.message(), HasSubstr("teams already"));
        EXPECT_GE(names.size(), 200U);
        for (const TeamName name : names) EXPECT_TRUE(table.destroy(name).ok());
    });
}

TEST(TeamTable, RejectsASplitWithDifferentArguments) {
    TeamWorld world(3);
    world.run([](TeamTable& table, int pe) {
        TeamName made;
        const Status done = split(table, table.world(), 0, 1, pe == 1 ? 3 : 2, made);
        EXPECT_EQ(done.code(), Code::mismatch);
        EXPECT_THAT(done.message(), HasSubstr("all must give the same"));
        EXPECT_EQ(made.value, 0U);
    });
}

// More records than the workspace of one member holds.
TEST(TeamTable, SplitsALargeTeam) {
    TeamWorld world(40);
    world.run([](TeamTable& table, int pe) {
        for (int round = 0; round < 3; ++round) {
            TeamName made;
            ASSERT_TRUE(split(table, table.world(), 1, 2, 20, made).ok());
            ASSERT_EQ(made.value != 0, pe % 2 == 1);
            if (pe % 2 == 1) {
                ASSERT_TRUE(table.destroy(made).ok());
            }
            TeamName all;
            ASSERT_TRUE(split(table, table.world(), 0, 1, 40, all).ok());
            ASSERT_TRUE(table.find(all)->sync().ok());
            ASSERT_TRUE(table.destroy(all).ok());
            const Status different = split(table, table.world(), 0, 1, pe == 39 ? 7 : 8, made);
            ASSERT_EQ(different.code(), Code::mismatch);
            ASSERT_THAT(different.message(), HasSubstr("PE 39"));
        }
    });
}

TEST(TeamTable, ASplitFindsAMemberThatMakesAnotherCall) {
    for (const int pes : {2, 12}) {
        TeamWorld world(pes);
        world.run([](TeamTable& table, int pe) {
            TeamName made;
            ASSERT_TRUE(split(table, table.world(), 0, 1, 2, made).ok());  // leaves records that look the same
            // Twice: a member that missed one would use the other halves of the workspaces.
            if (pe == 1) {
                ASSERT_TRUE(table.world().sync().ok());
                ASSERT_TRUE(table.world().sync().ok());
            }
            for (int turn = 0; pe != 1 && turn < 2; ++turn) {
                const Status alone = split(table, table.world(), 0, 1, 2, made);
                EXPECT_EQ(alone.code(), Code::protocol);
                EXPECT_THAT(alone.message(), HasSubstr("PE 1 of the team world makes another collective call"));
            }
            EXPECT_TRUE(split(table, table.world(), 0, 1, 2, made).ok()) << "afterwards";
        });
    }
}

Status first_is_positive(const SplitArguments& arguments) {
    return arguments[0] >= 1 ? Status{} : Status{Code::range, "the first is 0"};
}

// The PE with wrong arguments takes part without specs, and the others do not hang.
TEST(TeamTable, ARejectionByOnePeFailsAll) {
    TeamWorld world(3);
    const TeamSlotSet before = world.table(0).slots().free();
    const SplitRules rules{SplitArgumentRule::alike, first_is_positive};
    world.run([&](TeamTable& table, int pe) {
        const TeamSpec specs[] = {{table.world().members().every(0, 1, 3), 0}};
        TeamName made;
        const std::span<const TeamSpec> mine = pe == 1 ? std::span<const TeamSpec>() : specs;
        const Status refused = table.split(table.world(), {pe == 1 ? 0U : 4U, 0, 0}, rules, mine, std::span(&made, 1));
        EXPECT_EQ(refused.code(), Code::range);
        EXPECT_THAT(refused.message(), AllOf(HasSubstr("PE 1 of the team world"), HasSubstr("the first is 0")));
        const auto where = pe == 2 ? std::span<TeamName>() : std::span(&made, 1);
        const Status nowhere = table.split(table.world(), {4, 0, 0}, rules, specs, where);
        EXPECT_EQ(nowhere.code(), Code::argument);
        EXPECT_THAT(nowhere.message(), HasSubstr("PE 2 of the team world gave NULL"));
        EXPECT_EQ(made.value, 0U);
        ASSERT_TRUE(table.split(table.world(), {4, 0, 0}, rules, specs, std::span(&made, 1)).ok());
        ASSERT_TRUE(table.find(made)->sync().ok());
        ASSERT_TRUE(table.destroy(made).ok());
    });
    for (int pe = 0; pe < 3; ++pe) EXPECT_EQ(world.table(pe).slots().free(), before);
}

TEST(TeamTable, TripletsMakeDifferentTeamsInOneSplit) {
    TeamWorld world(4);
    world.run([](TeamTable& table, int pe) {
        TeamName made;
        ASSERT_TRUE(split(table, table.world(), pe / 2 * 2, 1, 2, made).ok());
        EXPECT_EQ(table.find(made)->size(), 2);
        EXPECT_EQ(table.find(made)->index(), pe % 2);
        TeamName none;
        const Status refused = split(table, table.world(), pe / 2 * 2, 1, 2, none, SplitArgumentRule::alike);
        EXPECT_EQ(refused.code(), Code::mismatch);
        // Each PE is in the team that its left neighbour names.
        EXPECT_EQ(split(table, table.world(), (pe + 1) % 4, 1, 1, none).code(), Code::mismatch);
    });
}

// Like active sets: claims a slot, prepares it and begins a team, without a parent.
TEST(TeamTable, BeginsATeamWithoutAParent) {
    TeamWorld world(1);
    TeamTable& table = world.table(0);
    EXPECT_FALSE(table.slots().claim(0)) << "the world's";
    EXPECT_TRUE(table.slots().claim(7));
    EXPECT_FALSE(table.slots().claim(7));
    ASSERT_TRUE(table.slots().prepare(7).ok());
    const TeamName name = table.begin({7, PeRange::one(0), true}, 3);
    ASSERT_NE(table.find(name), nullptr);
    EXPECT_EQ(table.find(name)->contexts_wanted, 3);
    ASSERT_TRUE(table.destroy(name).ok());
    EXPECT_TRUE(table.slots().claim(7));
    table.slots().release(7);
}

}  // namespace
}  // namespace npushmem
