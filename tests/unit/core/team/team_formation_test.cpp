// SPDX-License-Identifier: BSD-3-Clause
#include "core/team/team_formation.hpp"

#include <fmt/format.h>
#include <gmock/gmock.h>

#include <atomic>
#include <numeric>
#include <thread>

#include "tests/unit/core/team/team_world.hpp"

namespace npushmem {
namespace {

using ::testing::HasSubstr;
using Pes = std::vector<int>;

// The index of a PE in the list; -1 where it is not.
int index_in(const Pes& pes, int pe) {
    const auto at = std::ranges::find(pes, pe);
    return at == pes.end() ? -1 : static_cast<int>(at - pes.begin());
}

// The state of an id in a shared word, once its maker has made it. Release and acquire are partners.
class PublishedId {
public:
    void set(std::uint64_t id) { id_.store(id, std::memory_order_release); }
    std::uint64_t get() const {
        std::uint64_t id = 0;
        while ((id = id_.load(std::memory_order_acquire)) == 0) std::this_thread::yield();
        return id;
    }

private:
    std::atomic<std::uint64_t> id_{0};
};

Status form(TeamTable& table, PublishedId& id, int leader, int npes, int index, TeamName& made) {
    if (table.resources().my_pe == leader) id.set(table.make_id());
    return table.form_team(id.get(), npes, index, 0, made);
}

// Every order of four PEs, and each of them as the leader.
TEST(TeamFormation, FormsATeamInAnyOrder) {
    TeamWorld world(4);
    Pes order{0, 1, 2, 3};
    std::vector<Pes> orders;
    do orders.push_back(order);
    while (std::ranges::next_permutation(order).found);
    std::vector<PublishedId> ids(orders.size());
    world.run([&](TeamTable& table, int pe) {
        for (std::size_t i = 0; i < orders.size(); ++i) {
            TeamName made;
            const Status done = form(table, ids[i], static_cast<int>(i % 4), 4, index_in(orders[i], pe), made);
            ASSERT_TRUE(done.ok()) << done.message();
            Team& team = *table.find(made);
            for (int member = 0; member < 4; ++member)
                ASSERT_EQ(team.members().at(member), orders[i][static_cast<std::size_t>(member)]);
            ASSERT_TRUE(team.all_mapped());
            for (int round = 0; round < 3; ++round) ASSERT_TRUE(team.sync().ok());
            ASSERT_TRUE(table.destroy(made).ok());
        }
    });
}

// PEs that are not members do nothing; disjoint teams form at the same time.
TEST(TeamFormation, DoesNotInvolveOtherPes) {
    TeamWorld world(6);
    const Pes some{4, 0, 1};
    const Pes others{5, 2};
    std::vector<PublishedId> ids(2 * 200);
    world.run([&](TeamTable& table, int pe) {
        const bool of_some = index_in(some, pe) >= 0;
        const Pes& mine = of_some ? some : others;
        if (index_in(mine, pe) < 0) return;
        for (std::size_t i = 0; i < 200; ++i) {
            TeamName made;
            ASSERT_TRUE(form(table, ids[2 * i + (of_some ? 0 : 1)], mine[0], static_cast<int>(mine.size()),
                             index_in(mine, pe), made)
                            .ok());
            ASSERT_TRUE(table.find(made)->sync().ok());
            ASSERT_TRUE(table.destroy(made).ok());
        }
    });
}

TEST(TeamFormation, FormsATeamOfOne) {
    TeamWorld world(2);
    TeamTable& table = world.table(1);
    TeamName made;
    ASSERT_TRUE(table.form_team(table.make_id(), 1, 0, 5, made).ok());
    EXPECT_EQ(table.find(made)->size(), 1);
    EXPECT_EQ(table.find(made)->contexts_wanted, 5);
    EXPECT_TRUE(table.destroy(made).ok());
}

// A split of a listed team uses its numbering, with a list or without.
TEST(TeamFormation, FormedTeamsCanBeSplit) {
    TeamWorld world(4);
    const Pes order{2, 0, 3, 1};
    PublishedId id;
    world.run([&](TeamTable& table, int pe) {
        TeamName made;
        ASSERT_TRUE(form(table, id, 3, 4, index_in(order, pe), made).ok());
        Team& parent = *table.find(made);
        const TeamSpec specs[] = {{parent.members().every(0, 1, 3), 0}};
        TeamName child;
        ASSERT_TRUE(table.split(parent, {0, 1, 3}, {SplitArgumentRule::alike}, specs, std::span(&child, 1)).ok());
        ASSERT_EQ(child.value == 0, pe == 1);
        if (child.value == 0) return;
        EXPECT_EQ(table.find(child)->members().text(), "PEs 2, 0, 3");
        EXPECT_TRUE(table.find(child)->sync().ok());
    });
}

// All get the same message and can continue.
TEST(TeamFormation, ConflictsFailAllMembers) {
    struct Wrong {
        int sizes[3];
        int indices[3];
        Code code;
        const char* text;
    };
    const Wrong cases[] = {
        {{3, 3, 3}, {0, 2, 2}, Code::mismatch, "PE 1 and PE 2 both gave pe_idx_in_team 2"},
        {{3, 3, 3}, {0, 0, 0}, Code::mismatch, "PE 0 and PE 1 both gave pe_idx_in_team 0"},
        {{3, 3, 3}, {0, 1, 3}, Code::range, "PE 2 gave pe_idx_in_team 3; the team has 0 to 2"},
        {{3, 3, 3}, {0, -1, 2}, Code::range, "PE 1 gave pe_idx_in_team -1"},
    };
    TeamWorld world(3);
    std::vector<PublishedId> ids(std::size(cases) + 1);
    world.run([&](TeamTable& table, int pe) {
        const auto me = static_cast<std::size_t>(pe);
        TeamName made;
        for (std::size_t i = 0; i < std::size(cases); ++i) {
            const Wrong& wrong = cases[i];
            const Status done = form(table, ids[i], 1, wrong.sizes[me], wrong.indices[me], made);
            EXPECT_EQ(done.code(), wrong.code) << done.message();
            EXPECT_THAT(done.message(), HasSubstr(wrong.text));
            EXPECT_EQ(made.value, 0U);
        }
        EXPECT_TRUE(form(table, ids.back(), 2, 3, pe, made).ok());
    });
}

TEST(TeamFormation, ReportsDifferentSizes) {
    TeamWorld world(2);
    PublishedId id;
    world.run([&](TeamTable& table, int pe) {
        TeamName made;
        const Status done = form(table, id, 0, pe == 0 ? 2 : 5, pe, made);
        EXPECT_EQ(done.code(), Code::mismatch);
        EXPECT_THAT(done.message(), HasSubstr("npes is 2 on PE 0 and 5 on PE 1"));
    });
}

TEST(TeamFormation, WaitsForAMissingPeUntilTheDeadline) {
    TeamWorld world(3, std::chrono::milliseconds{50});
    PublishedId id;
    world.run([&](TeamTable& table, int pe) {
        if (pe == 2) return;
        TeamName made;
        const Status done = form(table, id, 0, 3, pe, made);
        EXPECT_EQ(done.code(), Code::timeout) << done.message();
        EXPECT_EQ(made.value, 0U);
    });
}

// The others do not know yet whether it is a member.
TEST(TeamFormation, ReportsAPeThatDiesBeforeItArrives) {
    TeamWorld world(3);
    PublishedId id;
    world.kill(2);
    world.run([&](TeamTable& table, int pe) {
        if (pe == 2) return;
        TeamName made;
        const Status done = form(table, id, 0, 3, pe, made);
        EXPECT_EQ(done.code(), Code::peer_dead) << done.message();
        EXPECT_THAT(done.message(), HasSubstr("PE 2 has died"));
        EXPECT_EQ(made.value, 0U);
    });
}

TEST(TeamFormation, ReportsADeadLeader) {
    TeamWorld world(2);
    const std::uint64_t id = world.table(0).make_id();
    world.kill(0);
    TeamName made;
    const Status done = world.table(1).form_team(id, 2, 1, 0, made);
    EXPECT_EQ(done.code(), Code::peer_dead);
    EXPECT_THAT(done.message(), HasSubstr("PE 0 has died"));
}

// The leader has its arrival, and fails later. PE 2 comes too late and gets the outcome.
TEST(TeamFormation, NamesAPeThatDiesAfterItHasArrived) {
    TeamWorld world(3, std::chrono::seconds{60}, 1);
    const std::uint64_t id = world.table(0).make_id();
    TeamName made;
    EXPECT_EQ(world.table(1).form_team(id, 2, 1, 0, made).code(), Code::timeout);
    world.kill(1);
    EXPECT_EQ(world.table(0).form_team(id, 2, 0, 0, made).code(), Code::peer_dead);
    const Status outcome = world.table(2).form_team(id, 2, 1, 0, made);
    EXPECT_EQ(outcome.code(), Code::peer_dead);
    EXPECT_THAT(outcome.message(), HasSubstr("PE 1 has died"));
}

TEST(TeamFormation, RejectsUsedAndUnknownIds) {
    TeamWorld world(2);
    TeamTable& table = world.table(0);
    TeamName made;
    const std::uint64_t id = table.make_id();
    EXPECT_NE(id, table.make_id());
    ASSERT_TRUE(table.form_team(id, 1, 0, 0, made).ok());
    EXPECT_THAT(table.form_team(id, 1, 0, 0, made).message(), HasSubstr("an id serves for one team"));
    EXPECT_EQ(table.form_team(make_team_id(0, 77), 1, 0, 0, made).code(), Code::argument);
    for (const std::uint64_t wrong : {std::uint64_t{0}, std::uint64_t{5}, make_team_id(2, 1), ~std::uint64_t{0}})
        EXPECT_THAT(table.form_team(wrong, 1, 0, 0, made).message(), HasSubstr("has made the id")) << wrong;
    EXPECT_EQ(table.form_team(table.make_id(), 3, 0, 0, made).code(), Code::range);
    EXPECT_EQ(table.form_team(table.make_id(), 0, 0, 0, made).code(), Code::range);
    EXPECT_THAT(world.table(1).form_team(make_team_id(0, 77), 1, 0, 0, made).message(), HasSubstr("has made the id"));
}

// A PE that arrives after the end learns the outcome, although nobody answers any more.
TEST(TeamFormation, LatePesGetTheOutcome) {
    TeamWorld world(4);
    PublishedId sizes, made_without, range;
    world.run([&](TeamTable& table, int pe) {
        TeamName made;
        if (pe < 2) {
            EXPECT_EQ(form(table, sizes, 0, 4 - pe, pe, made).code(), Code::mismatch);
            EXPECT_TRUE(form(table, made_without, 1, 2, pe, made).ok());
        }
        if (pe == 0) {
            EXPECT_EQ(form(table, range, 0, 5, pe, made).code(), Code::range);
        }
    });
    // More messages than fit into the mailbox of a PE that does not read it.
    for (int round = 0; round < 2 * TeamMailbox::slots; ++round)
        for (const int pe : {2, 3}) {
            TeamName made;
            const auto failure = [&](PublishedId& id) {
                return world.table(pe).form_team(id.get(), 4, pe, 0, made).message();
            };
            EXPECT_THAT(failure(sizes), HasSubstr("npes is 4 on PE 0 and 3 on PE 1"));
            EXPECT_THAT(failure(made_without),
                        HasSubstr(fmt::format("PE {} has arrived to form a team that already has all of its 2", pe)));
            EXPECT_THAT(failure(range), HasSubstr("npes is 5 on PE 0, which made the id"));
        }
}

// The same while the others are still forming, in any order of arrival: nobody waits in vain.
TEST(TeamFormation, ARefusalReachesAllInAnyOrderOfArrival) {
    TeamWorld world(4);
    std::vector<PublishedId> ids(200);
    world.run([&](TeamTable& table, int pe) {
        for (std::size_t i = 0; i < ids.size(); ++i) {
            TeamName made;
            const int leader = static_cast<int>(i % 4);
            const bool wrong = pe == static_cast<int>(i / 4 % 4);
            EXPECT_FALSE(form(table, ids[i], leader, wrong ? 9 : 4, pe, made).ok());
        }
        TeamName made;
        EXPECT_TRUE(form(table, ids[0], -1, 4, pe, made).code() == Code::argument || pe != 0);
    });
}

// Two threads of one PE do not count as two members; neither they nor the others hang.
TEST(TeamFormation, OnePeIsNotCountedTwice) {
    for (const int twice : {0, 1}) {
        TeamWorld world(3);
        const std::uint64_t id = world.table(0).make_id();
        std::atomic<int> named{0};
        const auto arrive = [&](int pe, int index) {
            TeamName made;
            const Status done = world.table(pe).form_team(id, 3, index, 0, made);
            EXPECT_FALSE(done.ok());
            if (done.message().find(fmt::format("PE {} has ", twice)) != std::string::npos)
                named.fetch_add(1, std::memory_order_relaxed);
        };
        std::thread second([&] { arrive(twice, 2); });
        std::thread other([&] { arrive(1 - twice, 1); });
        arrive(twice, 0);
        second.join();
        other.join();
        EXPECT_EQ(named.load(std::memory_order_relaxed), 3);
    }
}

// A PE that arrived and timed out leaves no trace: its slots are free, and later messages arrive.
TEST(TeamFormation, AFailureReleasesSlots) {
    TeamWorld world(2, std::chrono::seconds{60});
    const TeamSlotSet before = world.table(0).slots().free();
    std::vector<PublishedId> ids(20);
    world.run([&](TeamTable& table, int) {
        for (std::size_t i = 0; i < ids.size(); ++i) {
            TeamName made;
            EXPECT_EQ(form(table, ids[i], static_cast<int>(i % 2), 2, 0, made).code(), Code::mismatch);
        }
    });
    EXPECT_EQ(world.table(0).slots().free(), before);
    EXPECT_EQ(world.table(1).slots().free(), before);
}

}  // namespace
}  // namespace npushmem
