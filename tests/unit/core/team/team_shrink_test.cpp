// SPDX-License-Identifier: BSD-3-Clause
#include "core/team/team_shrink.hpp"

#include <gmock/gmock.h>

#include <atomic>
#include <thread>

#include "tests/unit/core/team/team_world.hpp"

namespace npushmem {
namespace {

using ::testing::HasSubstr;

std::string members_of(TeamTable& table, TeamName name) { return table.find(name)->members().text(); }

TEST(TeamShrink, WithoutDeathsKeepsAllMembers) {
    TeamWorld world(4);
    world.run([&](TeamTable& table, int) {
        for (int round = 0; round < 20; ++round) {
            TeamName made;
            const Status done = table.shrink(table.world(), true, made);
            ASSERT_TRUE(done.ok()) << done.message();
            Team& team = *table.find(made);
            ASSERT_EQ(team.size(), 4);
            ASSERT_TRUE(team.all_mapped());
            for (int sync = 0; sync < 3; ++sync) ASSERT_TRUE(team.sync().ok());
            ASSERT_TRUE(table.destroy(made).ok());
        }
    });
}

// One PE after the other dies, until one is left; each team comes from the one before.
TEST(TeamShrink, LeavesOutTheDead) {
    TeamWorld world(4);
    std::atomic<int> living{4};
    world.run([&](TeamTable& table, int pe) {
        Team* parent = &table.world();
        for (const int victim : {2, 0, 3}) {
            if (pe == victim) return world.kill(pe);
            TeamName made;
            const Status done = table.shrink(*parent, true, made);
            ASSERT_TRUE(done.ok()) << done.message();
            parent = table.find(made);
            ASSERT_LT(parent->members().index_of(victim), 0);
            ASSERT_TRUE(parent->sync().ok());
            // The next victim dies after all have synchronised.
        }
        living = parent->size();
    });
    EXPECT_EQ(living, 1);
}

// The death of a member of a team does not keep its living members from shrinking it again.
TEST(TeamShrink, TheSameParentCanBeShrunkAgain) {
    TeamWorld world(3);
    world.run([&](TeamTable& table, int pe) {
        TeamName first;
        ASSERT_TRUE(table.shrink(table.world(), true, first).ok());
        ASSERT_TRUE(table.find(first)->sync().ok());
        if (pe == 1) return world.kill(1);
        for (int round = 0; round < 3; ++round) {
            TeamName made;
            ASSERT_TRUE(table.shrink(table.world(), true, made).ok());
            ASSERT_EQ(members_of(table, made), "PEs 0 to 2, every 2");
            ASSERT_TRUE(table.find(made)->sync().ok());
        }
        // Its slot stays in use: the dead PE may have left a signal in it.
        EXPECT_EQ(table.destroy(first).code(), Code::peer_dead);
        EXPECT_EQ(table.find(first), nullptr);
        TeamName next;
        ASSERT_TRUE(table.shrink(table.world(), true, next).ok());
        EXPECT_NE(next.value & 0xFFFF, first.value & 0xFFFF);
    });
}

TEST(TeamShrink, APeWithoutAnOutputFailsTheCallOnAll) {
    TeamWorld world(3);
    world.run([&](TeamTable& table, int pe) {
        TeamName made;
        const Status done = table.shrink(table.world(), pe != 1, made);
        EXPECT_EQ(done.code(), Code::memory);
        EXPECT_THAT(done.message(), HasSubstr("no slot for a team is free on all living PEs"));
        EXPECT_TRUE(table.shrink(table.world(), true, made).ok()) << "the next call works";
    });
}

TEST(TeamShrink, TellsAnExcludedPe) {
    TeamWorld world(3);
    std::atomic<int> decided{0};
    world.kill(2);
    world.run([&](TeamTable& table, int pe) {
        while (pe == 2 && decided.load() < 2) std::this_thread::yield();
        TeamName made;
        const Status done = table.shrink(table.world(), true, made);
        ++decided;
        EXPECT_EQ(done.ok(), pe != 2);
        if (pe == 2) {
            EXPECT_EQ(done.code(), Code::peer_dead);
            EXPECT_THAT(done.message(), HasSubstr("have counted PE 2, this one, among the dead"));
        }
    });
}

// Its process lives, so nobody finds it dead.
TEST(TeamShrink, AMemberWhoseCallFailsIsLeftOut) {
    TeamWorld world(3, std::chrono::seconds{60}, 2);
    std::atomic<bool> failed{false};
    world.run([&](TeamTable& table, int pe) {
        while (pe == 1 && !failed.load()) std::this_thread::yield();
        TeamName made;
        const Status done = table.shrink(table.world(), true, made);
        if (pe == 2) {
            EXPECT_EQ(done.code(), Code::timeout);
            failed = true;
            return;
        }
        ASSERT_TRUE(done.ok()) << done.message();
        EXPECT_EQ(members_of(table, made), "PEs 0 to 1, every 1");
    });
}

// The others have made further calls before it reads their records again.
TEST(TeamShrink, AnExcludedPeWaitsForNoRecordThatIsGone) {
    TeamWorld world(3);
    std::atomic<int> finished{0};
    world.kill(2);
    world.run([&](TeamTable& table, int pe) {
        while (pe == 2 && finished.load() < 2) std::this_thread::yield();
        for (int call = 0; call < (pe == 2 ? 1 : 3); ++call) {
            TeamName made;
            EXPECT_EQ(table.shrink(table.world(), true, made).code(), pe == 2 ? Code::peer_dead : Code::ok);
        }
        ++finished;
    });
}

TEST(TeamShrink, WaitsForAMissingPeUntilTheDeadline) {
    TeamWorld world(2, std::chrono::milliseconds{50});
    TeamTable& table = world.table(0);
    TeamName made;
    const Status done = table.shrink(table.world(), true, made);
    EXPECT_EQ(done.code(), Code::timeout);
    EXPECT_THAT(done.message(), HasSubstr("from PE 1"));
    EXPECT_EQ(table.shrink(table.world(), true, made).code(), Code::protocol);
}

// Some members end while others still shrink a team: these continue without them.
TEST(TeamShrink, MembersThatEndAreLeftOut) {
    TeamWorld world(4);
    world.kill(3);
    world.run([&](TeamTable& table, int pe) {
        if (pe == 3) return;
        if (pe == 1) {
            table.publish_ends();
            EXPECT_TRUE(table.wait_for_ends().ok());
            return;
        }
        TeamName made;
        ASSERT_TRUE(table.shrink(table.world(), true, made).ok());
        ASSERT_EQ(members_of(table, made), "PEs 0 to 2, every 2");
        ASSERT_TRUE(table.find(made)->sync().ok());
        table.publish_ends();
        EXPECT_TRUE(table.wait_for_ends().ok());
    });
}

// More than one word of members, at random times of death.
TEST(TeamShrink, ManyMembersDieAtAnyTime) {
    constexpr int pes = 8;
    for (unsigned seed = 0; seed < 30; ++seed) {
        TeamWorld world(pes);
        std::array<std::string, pes> members;
        world.run([&](TeamTable& table, int pe) {
            const unsigned fate = (seed * 2654435761U) >> (3 * pe) & 7;
            if (pe > 0 && fate < 3) {
                for (unsigned i = 0; i < fate * 500; ++i) std::this_thread::yield();
                return world.kill(pe);
            }
            TeamName made;
            ASSERT_TRUE(table.shrink(table.world(), true, made).ok());
            members[static_cast<std::size_t>(pe)] = members_of(table, made);
            ASSERT_TRUE(table.find(made)->sync().ok());
        });
        for (const std::string& text : members)
            if (!text.empty()) {
                EXPECT_EQ(text, members[0]);
            }
    }
}

}  // namespace
}  // namespace npushmem
