// SPDX-License-Identifier: BSD-3-Clause
#include "core/team/team_barrier.hpp"

#include <gmock/gmock.h>

#include <memory>

#include "tests/fakes/fake_os.hpp"
#include "tests/unit/core/team/team_world.hpp"

namespace npushmem {

namespace {

using std::chrono::nanoseconds;

// Members of a team in one thread, one after the other: member i enters at a given time, all leave at another.
struct BarrierStatisticsTest : ::testing::Test {
    static constexpr std::size_t members = 3;

    BarrierStatisticsTest() {
        os.clock_cost = nanoseconds{0};
        std::vector<BarrierCounters*> all;
        for (auto& one : counts) all.push_back(&one);
        for (std::size_t i = 0; i < members; ++i)
            statistics.push_back(std::make_unique<BarrierStatistics>(all, i, 2, os));
    }

    // The first member's barrier encloses the second's, and so on, so all enter before any leaves.
    void run_barrier(std::uint64_t number, const std::vector<std::size_t>& order, std::size_t at = 0) {
        os.sleep(nanoseconds{100 * (at + 1)});
        const Code code = statistics[order[at]]->timed_run(number, [&] {
            if (at + 1 < members) run_barrier(number, order, at + 1);
            return Code::ok;
        });
        EXPECT_EQ(code, Code::ok);
    }

    testing::FakeWaitOs os;
    BarrierCounters counts[members] = {};
    std::vector<std::unique_ptr<BarrierStatistics>> statistics;
};

TEST_F(BarrierStatisticsTest, CountsEveryBarrierAndTimesSome) {
    for (std::uint64_t number = 1; number <= 5; ++number) run_barrier(number, {0, 1, 2});
    for (const BarrierCounters& one : counts) {
        EXPECT_EQ(one.barriers, 5U);
        EXPECT_EQ(one.timed, 2U);
    }
    // The first enters 200 ns before the second and 500 ns before the last; then all leave.
    EXPECT_EQ(counts[0].nanoseconds, 2 * 500U);
    EXPECT_EQ(counts[1].nanoseconds, 2 * 300U);
    EXPECT_EQ(counts[0].longest, 500U);
}

TEST_F(BarrierStatisticsTest, EveryTimedBarrierHasALastArrival) {
    run_barrier(2, {0, 1, 2});
    run_barrier(4, {2, 0, 1});
    run_barrier(6, {0, 1, 2});
    run_barrier(8, {2, 1, 0});
    EXPECT_EQ(counts[2].entered_last, 2U);
    EXPECT_EQ(counts[1].entered_last, 1U);
    EXPECT_EQ(counts[0].entered_last, 1U);
    EXPECT_EQ(counts[2].late_nanoseconds, 2 * 300U);
}

TEST_F(BarrierStatisticsTest, AFailedBarrierIsNotTimed) {
    EXPECT_EQ(statistics[0]->timed_run(2, [] { return Code::timeout; }), Code::timeout);
    EXPECT_EQ(counts[0].barriers, 1U);
    EXPECT_EQ(counts[0].timed, 0U);
}

TEST(BarrierStatistics, OneMemberIsNeverLast) {
    testing::FakeWaitOs os;
    BarrierCounters counts{};
    BarrierStatistics statistics({&counts}, 0, 1, os);
    EXPECT_EQ(statistics.timed_run(1, [] { return Code::ok; }), Code::ok);
    EXPECT_EQ(counts.timed, 1U);
    EXPECT_EQ(counts.entered_last, 0U);
}

using ::testing::AllOf;
using ::testing::EndsWith;
using ::testing::HasSubstr;

// Both others wait for the last PE, which does not enter.
void expect_last_pe_missing(Team& team, int pe) {
    if (pe == 2) return;
    const Status done = team.sync();
    EXPECT_EQ(done.code(), Code::timeout);
    EXPECT_THAT(done.message(), AllOf(HasSubstr("of team " + team.name()), HasSubstr("; missing: PE"), EndsWith("2")));
}

TEST(TeamBarrier, OfTheWorldNamesTheMissingPes) {
    TeamWorld world(3, std::chrono::milliseconds{50});
    world.run([](TeamTable& table, int pe) { expect_last_pe_missing(table.world(), pe); });
}

TEST(TeamBarrier, OfAnotherTeamNamesTheMissingPes) {
    TeamWorld world(3, std::chrono::milliseconds{50});
    world.run([](TeamTable& table, int pe) { expect_last_pe_missing(table.shared(), pe); });
}

TEST(TeamBarrier, CountsTheBarriersThatItLeft) {
    TeamWorld world(2);
    world.run([](TeamTable& table, int) {
        TeamBarrier& barrier = table.world().barrier();
        for (std::uint64_t number = 0; number < 5; ++number) {
            EXPECT_EQ(barrier.barriers(), number);
            ASSERT_TRUE(barrier.sync().ok());
        }
    });
}

TEST(TeamBarrier, RunsEveryPlan) {
    TeamWorld world(3);
    world.run([](TeamTable& table, int) {
        for (Team* team : {&table.world(), &table.shared()})
            for (const char* name : {"dissemination", "dissemination_k:3", "hierarchical", "shared_counter"}) {
                const auto choice = team->barrier().choose(name);
                ASSERT_TRUE(choice.ok()) << choice.status().message();
                ASSERT_TRUE(team->barrier().sync(choice.value().plan).ok()) << name;
            }
    });
}

}  // namespace

}  // namespace npushmem
