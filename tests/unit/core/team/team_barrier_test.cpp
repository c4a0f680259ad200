#include <gtest/gtest.h>

#include <algorithm>
#include <memory>
#include <numeric>

#include "core/team/team_barrier.hpp"
#include "tests/fakes/fake_os.hpp"

namespace npushmem {

namespace {

std::vector<int> pes_of(const Members& members) {
    std::vector<int> pes;
    for (int i = 0; i < members.count(); ++i) pes.push_back(members.at(i));
    return pes;
}

TEST(Members, AtEqualDistancesNeedNoList) {
    const Members members(PeRange{7, -2, 3});
    EXPECT_EQ(pes_of(members), (std::vector<int>{7, 5, 3}));
    EXPECT_EQ(members.index_of(5), 1);
    EXPECT_EQ(members.index_of(3), 2);
    for (const int other : {1, 4, 6, 9, -1}) EXPECT_EQ(members.index_of(other), -1) << other;
    EXPECT_EQ(members.list_hash(), 0U);
}

TEST(Members, OfAListAtEqualDistancesBecomeARange) {
    const Members members = Members::listed({1, 4, 7});
    EXPECT_EQ(members.range().table, nullptr);
    EXPECT_EQ(members.range().stride, 3);
    EXPECT_EQ(Members::listed({6}).range().table, nullptr);
    EXPECT_EQ(Members::listed({6, 2}).range().stride, -4);
}

// Every order of every set of PEs up to 5.
TEST(Members, OfAListAreFoundByIndexAndByPe) {
    for (int n = 1; n <= 5; ++n) {
        std::vector<int> order(static_cast<std::size_t>(n));
        std::iota(order.begin(), order.end(), 3);
        do {
            const Members members = Members::listed(order);
            ASSERT_EQ(pes_of(members), order);
            for (int i = 0; i < n; ++i) ASSERT_EQ(members.index_of(order[static_cast<std::size_t>(i)]), i);
            ASSERT_EQ(members.index_of(2), -1);
            ASSERT_EQ(members.index_of(3 + n), -1);
        } while (std::ranges::next_permutation(order).found);
    }
}

TEST(Members, AreSplitByIndex) {
    const Members members = Members::listed({9, 2, 7, 0, 4});
    EXPECT_EQ(pes_of(members.every(0, 2, 3)), (std::vector<int>{9, 7, 4}));
    EXPECT_EQ(pes_of(members.every(4, -1, 5)), (std::vector<int>{4, 0, 7, 2, 9}));
    EXPECT_EQ(members.every(1, 2, 2).range().table, nullptr);
    EXPECT_EQ(pes_of(Members(PeRange{1, 3, 4}).every(3, -2, 2)), (std::vector<int>{10, 4}));
}

TEST(Members, KeepTheirListAsLongAsACopyLives) {
    Members copy;
    {
        const Members members = Members::listed({5, 0, 3});
        copy = members;
    }
    EXPECT_EQ(pes_of(copy), (std::vector<int>{5, 0, 3}));
    EXPECT_EQ(copy.range().at(2), 3);
}

TEST(Members, HaveAHashByPeAndOrder) {
    EXPECT_EQ(Members::listed({5, 0, 3}).list_hash(), Members::listed({5, 0, 3}).list_hash());
    EXPECT_NE(Members::listed({5, 0, 3}).list_hash(), Members::listed({5, 3, 0}).list_hash());
}

TEST(Members, AreDescribed) {
    EXPECT_EQ(Members(PeRange::one(4)).text(), "PE 4");
    EXPECT_EQ(Members(PeRange{1, 2, 4}).text(), "PEs 1 to 7, every 2");
    EXPECT_EQ(Members::listed({5, 0, 3}).text(), "PEs 5, 0, 3");
    std::vector<int> many(20);
    std::iota(many.begin(), many.end(), 0);
    std::swap(many.front(), many.back());
    EXPECT_EQ(Members::listed(many).text(), "PEs 19, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14, 15 and 4 more");
}

}  // namespace

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

}  // namespace

}  // namespace npushmem
