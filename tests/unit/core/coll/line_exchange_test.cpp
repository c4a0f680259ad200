#include "core/coll/line_exchange.hpp"

#include <gmock/gmock.h>

#include <array>
#include <cstring>
#include <functional>
#include <thread>
#include <vector>

namespace npushmem::coll {
namespace {

using ::testing::AllOf;
using ::testing::HasSubstr;

struct alignas(64) Cells {
    std::byte bytes[LineExchange::bytes] = {};
};

// Members as threads; body(exchange, index) in each.
struct Members {
    Members(int count, WaitBudget chosen) : n(count), budget(chosen), cells(static_cast<std::size_t>(count)) {}

    LineExchange member(int index, std::chrono::nanoseconds timeout) {
        return {barrier::StridedStates{cells[0].bytes, sizeof(Cells)}, {0, 1, n}, index, waiter, timeout};
    }
    void run(const std::function<void(LineExchange&, int)>& body) {
        std::vector<std::jthread> threads;
        for (int i = 0; i < n; ++i)
            threads.emplace_back([&, i] {
                LineExchange exchange = member(i, std::chrono::seconds{60});
                body(exchange, i);
            });
    }

    int n;
    WaitBudget budget;
    std::vector<Cells> cells;
    SystemWaitOs os;
    WaitCounters counters;
    Waiter waiter{budget, os, counters};
};

// Sleeps at once and for long: whoever is not woken is missed by the deadline.
constexpr WaitBudget sleeps_at_once{0, {}, {}, std::chrono::seconds{100}, std::chrono::seconds{100}};
constexpr WaitBudget yields{0, {}, std::chrono::milliseconds{1}};

class LineExchangeOf : public ::testing::TestWithParam<int> {};

// What member `from` sends `to` in a round: a length that all know, and bytes that tell the three.
std::uint64_t length(int round) { return static_cast<std::uint64_t>(round * 7) % (LineExchange::room + 1); }
std::byte content(int from, int to, int round, std::uint64_t i) {
    return static_cast<std::byte>(from * 31 + to * 17 + round * 5 + static_cast<int>(i));
}

void exchange_and_compare(LineExchange& exchange, int n, int me, int rounds) {
    std::vector<std::byte> source(LineExchange::room * static_cast<std::size_t>(n));
    for (int round = 0; round < rounds; ++round) {
        const std::uint64_t count = length(round);
        for (int to = 0; to < n; ++to)
            for (std::uint64_t i = 0; i < count; ++i)
                source[static_cast<std::uint64_t>(to) * count + i] = content(me, to, round, i);
        ASSERT_TRUE(exchange.run(source.data(), count, count).ok());
        for (int from = 0; from < n; ++from)
            for (std::uint64_t i = 0; i < count; ++i)
                ASSERT_EQ(exchange.of(from)[i], content(from, me, round, i)) << from << " in round " << round;
    }
}

TEST_P(LineExchangeOf, BringsEveryMembersBytesToEveryOther) {
    Members members(GetParam(), yields);
    members.run([&](LineExchange& exchange, int me) { exchange_and_compare(exchange, GetParam(), me, 500); });
}

TEST_P(LineExchangeOf, WakesThoseThatSleep) {
    Members members(GetParam(), sleeps_at_once);
    members.run([&](LineExchange& exchange, int me) { exchange_and_compare(exchange, GetParam(), me, 60); });
}

INSTANTIATE_TEST_SUITE_P(Sizes, LineExchangeOf, ::testing::Values(1, 2, 3, 5, LineExchange::most_members));

TEST(LineExchange, NamesWhoHasNotCome) {
    Members members(3, yields);
    LineExchange alone = members.member(1, std::chrono::milliseconds{5});
    const Status status = alone.run(nullptr, 0, 0);
    EXPECT_EQ(status.code(), Code::timeout);
    EXPECT_THAT(status.message(),
                AllOf(HasSubstr("small collective operation"), HasSubstr("nothing has come from PE 2")));
}

}  // namespace
}  // namespace npushmem::coll
