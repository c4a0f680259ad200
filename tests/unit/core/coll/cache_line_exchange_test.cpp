#include "core/coll/cache_line_exchange.hpp"

#include <gmock/gmock.h>

#include <array>
#include <cstring>
#include <vector>

#include "tests/unit/core/coll/threads_as_members.hpp"

namespace npushmem::coll {
namespace {

using ::testing::AllOf;
using ::testing::HasSubstr;

using LineExchangeMembers = test::ThreadsAsMembers<CacheLineExchange>;
using test::sleeps_at_once;
using test::yields;

class CacheLineExchangeOf : public ::testing::TestWithParam<int> {};

// What member `from` sends `to` in a round: a cell_length that all know, and bytes that tell the three.
std::uint64_t cell_length(int round) {
    return static_cast<std::uint64_t>(round * 7) % (CacheLineExchange::max_payload + 1);
}
std::byte cell_content(int from, int to, int round, std::uint64_t i) {
    return static_cast<std::byte>(from * 31 + to * 17 + round * 5 + static_cast<int>(i));
}

void exchange_and_compare(CacheLineExchange& exchange, int n, int me, int rounds) {
    std::vector<std::byte> source(CacheLineExchange::max_payload * static_cast<std::size_t>(n));
    for (int round = 0; round < rounds; ++round) {
        const std::uint64_t count = cell_length(round);
        for (int to = 0; to < n; ++to)
            for (std::uint64_t i = 0; i < count; ++i)
                source[static_cast<std::uint64_t>(to) * count + i] = cell_content(me, to, round, i);
        ASSERT_TRUE(exchange.run(source.data(), count, count).ok());
        for (int from = 0; from < n; ++from)
            for (std::uint64_t i = 0; i < count; ++i)
                ASSERT_EQ(exchange.of(from)[i], cell_content(from, me, round, i)) << from << " in round " << round;
    }
}

TEST_P(CacheLineExchangeOf, BringsEveryMembersBytesToEveryOther) {
    LineExchangeMembers members(GetParam(), yields);
    members.run([&](CacheLineExchange& exchange, int me) { exchange_and_compare(exchange, GetParam(), me, 500); });
}

TEST_P(CacheLineExchangeOf, WakesThoseThatSleep) {
    LineExchangeMembers members(GetParam(), sleeps_at_once);
    members.run([&](CacheLineExchange& exchange, int me) { exchange_and_compare(exchange, GetParam(), me, 60); });
}

INSTANTIATE_TEST_SUITE_P(Sizes, CacheLineExchangeOf, ::testing::Values(1, 2, 3, 5, CacheLineExchange::max_members));

TEST(CacheLineExchange, NamesWhoHasNotArrived) {
    LineExchangeMembers members(3, yields);
    CacheLineExchange alone = members.member(1, std::chrono::milliseconds{5});
    const Status status = alone.run(nullptr, 0, 0);
    EXPECT_EQ(status.code(), Code::timeout);
    EXPECT_THAT(status.message(),
                AllOf(HasSubstr("small collective operation"), HasSubstr("nothing has come from PE 2")));
}

}  // namespace
}  // namespace npushmem::coll
