#include "core/team/barrier_statistics.hpp"

#include <gtest/gtest.h>

#include <memory>

#include "tests/fakes/fake_wait_os.hpp"

namespace npushmem {
namespace {

using std::chrono::nanoseconds;

// Members of a team one after the other in one thread: member i comes at a given time, all leave at another.
struct BarrierStatisticsTest : ::testing::Test {
    static constexpr std::size_t members = 3;

    BarrierStatisticsTest() {
        os.clock_cost = nanoseconds{0};
        std::vector<BarrierCounters*> all;
        for (auto& one : counts) all.push_back(&one);
        for (std::size_t i = 0; i < members; ++i)
            statistics.push_back(std::make_unique<BarrierStatistics>(all, i, 2, os));
    }

    // The first member's barrier encloses the second's, and so on, so all have come before anybody leaves.
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
    // The first comes 200 ns before the second, 500 ns before the last, with whom all leave.
    EXPECT_EQ(counts[0].nanoseconds, 2 * 500U);
    EXPECT_EQ(counts[1].nanoseconds, 2 * 300U);
    EXPECT_EQ(counts[0].longest, 500U);
}

TEST_F(BarrierStatisticsTest, EveryTimedBarrierHasOneThatEnteredLast) {
    run_barrier(2, {0, 1, 2});
    run_barrier(4, {2, 0, 1});
    run_barrier(6, {0, 1, 2});
    run_barrier(8, {2, 1, 0});
    EXPECT_EQ(counts[2].last, 2U);
    EXPECT_EQ(counts[1].last, 1U);
    EXPECT_EQ(counts[0].last, 1U);
    EXPECT_EQ(counts[2].late_nanoseconds, 2 * 300U);
}

TEST_F(BarrierStatisticsTest, ABarrierThatFailsIsNotTimed) {
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
    EXPECT_EQ(counts.last, 0U);
}

}  // namespace
}  // namespace npushmem
