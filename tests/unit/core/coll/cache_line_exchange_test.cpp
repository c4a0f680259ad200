// SPDX-License-Identifier: BSD-3-Clause
#include <gmock/gmock.h>

#include <array>
#include <chrono>
#include <cstring>
#include <functional>
#include <thread>
#include <tuple>
#include <utility>
#include <vector>

#include "core/base/wait.hpp"
#include "core/coll/barrier/mapped_fabric.hpp"
#include "core/coll/cache_line_exchange.hpp"

namespace npushmem::coll::test {

// Members of a collective operation as threads of one process, over memory of the test's own.

// Sleeps at once and for long: a missing wake-up fails at the deadline.
inline constexpr WaitBudget sleeps_at_once{0, {}, {}, std::chrono::seconds{100}, std::chrono::seconds{100}};
inline constexpr WaitBudget yields{0, {}, std::chrono::milliseconds{1}};

// Operation: CacheLineExchange or BroadcastRing. `More`: its constructor's arguments between the member's index and the
// waiter.
template <class Operation, class... More>
struct ThreadsAsMembers {
    struct alignas(64) Memory {
        std::byte bytes[Operation::bytes] = {};
    };

    ThreadsAsMembers(int count, WaitBudget chosen, More... further)
        : n(count), budget(chosen), more(further...), memory(static_cast<std::size_t>(count)) {}

    Operation member(int index, std::chrono::nanoseconds timeout) {
        return std::apply(
            [&](const auto&... further) {
                return Operation{barrier::StridedStates{memory[0].bytes, sizeof(Memory)},
                                 {0, 1, n},
                                 index,
                                 further...,
                                 waiter,
                                 timeout};
            },
            more);
    }
    // body(operation, index) in each.
    void run(const std::function<void(Operation&, int)>& body) {
        std::vector<std::jthread> threads;
        for (int i = 0; i < n; ++i)
            threads.emplace_back([&, i] {
                Operation operation = member(i, std::chrono::seconds{60});
                body(operation, i);
            });
    }

    int n;
    WaitBudget budget;
    std::tuple<More...> more;
    std::vector<Memory> memory;
    SystemWaitOs os;
    WaitCounters counters;
    Waiter waiter{budget, os, counters};
};

}  // namespace npushmem::coll::test

namespace npushmem::coll {

namespace {

using ::testing::AllOf;
using ::testing::HasSubstr;

using LineExchangeMembers = test::ThreadsAsMembers<CacheLineExchange>;
using test::sleeps_at_once;
using test::yields;

class CacheLineExchangeOf : public ::testing::TestWithParam<int> {};

// The payload from `from` to `to` in a round: its length is known to all, and its bytes differ by round and members.
std::uint64_t cell_length(int round) {
    return static_cast<std::uint64_t>(round * 7) % (CacheLineExchange::payload_bytes + 1);
}
std::byte cell_content(int from, int to, int round, std::uint64_t i) {
    return static_cast<std::byte>(from * 31 + to * 17 + round * 5 + static_cast<int>(i));
}

void exchange_and_compare(CacheLineExchange& exchange, int n, int me, int rounds) {
    std::vector<std::byte> source(CacheLineExchange::payload_bytes * static_cast<std::size_t>(n));
    for (int round = 0; round < rounds; ++round) {
        const std::uint64_t count = cell_length(round);
        for (int to = 0; to < n; ++to)
            for (std::uint64_t i = 0; i < count; ++i)
                source[static_cast<std::uint64_t>(to) * count + i] = cell_content(me, to, round, i);
        ASSERT_TRUE(exchange.run(source.data(), count, true).ok());
        for (int from = 0; from < n; ++from)
            for (std::uint64_t i = 0; i < count; ++i)
                ASSERT_EQ(exchange.of(from)[i], cell_content(from, me, round, i)) << from << " in round " << round;
    }
}

TEST_P(CacheLineExchangeOf, DeliversAllBytesToAllMembers) {
    LineExchangeMembers members(GetParam(), yields);
    members.run([&](CacheLineExchange& exchange, int me) { exchange_and_compare(exchange, GetParam(), me, 500); });
}

TEST_P(CacheLineExchangeOf, WakesSleepers) {
    LineExchangeMembers members(GetParam(), sleeps_at_once);
    members.run([&](CacheLineExchange& exchange, int me) { exchange_and_compare(exchange, GetParam(), me, 60); });
}

INSTANTIATE_TEST_SUITE_P(Sizes, CacheLineExchangeOf, ::testing::Values(1, 2, 3, 5, CacheLineExchange::max_members));

TEST(CacheLineExchange, ReportsTheMissingMember) {
    LineExchangeMembers members(3, yields);
    CacheLineExchange alone = members.member(1, std::chrono::milliseconds{5});
    const Status status = alone.run(nullptr, 0, false);
    EXPECT_EQ(status.code(), Code::timeout);
    EXPECT_THAT(status.message(),
                AllOf(HasSubstr("small collective operation"), HasSubstr("received nothing from PE 2")));
}

}  // namespace

namespace {

using ::testing::AllOf;
using ::testing::Each;
using ::testing::HasSubstr;

// `bool`: oversubscribed; then waiting members may sleep until woken.
using BroadcastRingMembers = test::ThreadsAsMembers<BroadcastRing, bool>;
using test::sleeps_at_once;
using test::yields;

// The payload of a round: its length is known to all, and its bytes differ by round and root.
std::uint64_t length(int round) { return static_cast<std::uint64_t>(round * 7) % (BroadcastRing::payload_bytes + 1); }
std::byte content(int root, int round, std::uint64_t i) {
    return static_cast<std::byte>(root * 31 + round * 5 + static_cast<int>(i));
}

// Several consecutive calls per root. There is no barrier, so each root runs ahead as far as it may.
void broadcast_and_compare(BroadcastRing& ring, int n, int me, int rounds) {
    std::array<std::byte, BroadcastRing::payload_bytes> payload{};
    std::array<std::byte, BroadcastRing::payload_bytes> dest{};
    const std::array<std::byte, BroadcastRing::payload_bytes> wrong{};
    for (int round = 0; round < rounds; ++round) {
        const int root = round / 53 % n;
        const std::uint64_t count = length(round);
        for (std::uint64_t i = 0; i < count; ++i) payload[i] = content(root, round, i);
        dest.fill(std::byte{0});
        ASSERT_TRUE(ring.broadcast(me == root ? payload.data() : wrong.data(), dest.data(), count, root).ok());
        ASSERT_EQ(std::memcmp(dest.data(), payload.data(), count), 0) << round;
    }
}

class BroadcastRingOf : public ::testing::TestWithParam<int> {};

TEST_P(BroadcastRingOf, BroadcastsFollowEachOtherWithoutABarrier) {
    BroadcastRingMembers members(GetParam(), yields, false);
    members.run([&](BroadcastRing& ring, int me) { broadcast_and_compare(ring, GetParam(), me, 1000); });
}

TEST_P(BroadcastRingOf, WakesSleepersWhenOversubscribed) {
    BroadcastRingMembers members(GetParam(), sleeps_at_once, true);
    members.run([&](BroadcastRing& ring, int me) { broadcast_and_compare(ring, GetParam(), me, 200); });
}

INSTANTIATE_TEST_SUITE_P(Sizes, BroadcastRingOf, ::testing::Values(1, 2, 3, 5, 16));

TEST(BroadcastRing, ARootWithoutADestSendsToTheOthersOnly) {
    BroadcastRingMembers members(2, yields, false);
    BroadcastRing root = members.member(0, std::chrono::seconds{60});
    BroadcastRing other = members.member(1, std::chrono::seconds{60});
    const std::array<std::byte, 3> source{std::byte{1}, std::byte{2}, std::byte{3}};
    std::array<std::byte, 3> dest{};
    EXPECT_TRUE(root.broadcast(source.data(), nullptr, 3, 0).ok());
    EXPECT_TRUE(other.broadcast(nullptr, dest.data(), 3, 0).ok());
    EXPECT_EQ(dest, source);
}

constexpr std::uint64_t calls_in_ring =
    BroadcastRing::segments * BroadcastRing::segment_bytes / (2 * BroadcastRing::header_bytes);  // of 1 to 8 bytes

TEST(BroadcastRing, ARootIsAtMostARingAhead) {
    BroadcastRingMembers members(2, yields, false);
    BroadcastRing root = members.member(0, std::chrono::milliseconds{5});
    BroadcastRing other = members.member(1, std::chrono::milliseconds{5});
    for (std::uint64_t call = 0; call < calls_in_ring; ++call) {
        const std::uint64_t payload = call + 1;
        EXPECT_TRUE(root.broadcast(reinterpret_cast<const std::byte*>(&payload), nullptr, sizeof payload, 0).ok())
            << call;
    }
    const std::byte late{99};
    for (int attempt = 0; attempt < 2; ++attempt) {
        const Status status = root.broadcast(&late, nullptr, 1, 0);
        EXPECT_EQ(status.code(), Code::timeout);
        EXPECT_THAT(status.message(), AllOf(HasSubstr("a small broadcast"), HasSubstr("received nothing from PE 1")));
    }
    for (std::uint64_t call = 0; call < calls_in_ring; ++call) {
        std::uint64_t dest = 0;
        ASSERT_TRUE(other.broadcast(nullptr, reinterpret_cast<std::byte*>(&dest), sizeof dest, 0).ok());
        EXPECT_EQ(dest, call + 1);
    }
}

// In the second lap a header is awaited where a payload of the first lap was.
TEST(BroadcastRing, APayloadDoesNotPassForAHeader) {
    BroadcastRingMembers members(2, yields, false);
    BroadcastRing root = members.member(0, std::chrono::milliseconds{5});
    BroadcastRing other = members.member(1, std::chrono::milliseconds{5});
    constexpr std::uint64_t max_words = BroadcastRing::payload_bytes / 8;
    constexpr std::uint64_t calls_of_lap =
        BroadcastRing::segments * (BroadcastRing::segment_bytes / (8 * max_words + 8));
    std::array<std::uint64_t, max_words> payload{};
    std::array<std::uint64_t, max_words> dest{};
    const auto bytes_of = [](std::uint64_t* words) { return reinterpret_cast<std::byte*>(words); };
    payload.fill(calls_of_lap + 2);  // the number of the call that nobody sends
    for (std::uint64_t call = 1; call <= calls_of_lap + 1; ++call) {
        const std::uint64_t bytes = call <= calls_of_lap ? sizeof payload : 128;  // too long for the rest of a segment
        ASSERT_TRUE(root.broadcast(bytes_of(payload.data()), nullptr, bytes, 0).ok());
        ASSERT_TRUE(other.broadcast(nullptr, bytes_of(dest.data()), bytes, 0).ok());
    }
    EXPECT_EQ(other.broadcast(nullptr, bytes_of(dest.data()), 8, 0).code(), Code::timeout);
}

// A root reuses its ring without waiting when the others have read all.
TEST(BroadcastRing, NeverWaitsForAMemberThatHasReadAll) {
    for (const int roots : {1, 2}) {
        BroadcastRingMembers members(2, yields, false);
        std::array<BroadcastRing, 2> ring{members.member(0, std::chrono::milliseconds{5}),
                                          members.member(1, std::chrono::milliseconds{5})};
        for (int call = 0; call < 3000; ++call) {
            const auto root = static_cast<std::size_t>(call % roots);
            const auto payload = static_cast<std::byte>(call);
            std::byte dest{};
            ASSERT_TRUE(ring[root].broadcast(&payload, nullptr, 1, static_cast<int>(root)).ok()) << call;
            ASSERT_TRUE(ring[1 - root].broadcast(nullptr, &dest, 1, static_cast<int>(root)).ok()) << call;
            ASSERT_EQ(dest, payload);
        }
    }
}

TEST(BroadcastRing, ReportsAMissingRoot) {
    BroadcastRingMembers members(3, yields, false);
    BroadcastRing alone = members.member(1, std::chrono::milliseconds{5});
    std::array<std::byte, 4> dest{};
    const Status status = alone.broadcast(nullptr, dest.data(), 4, 2);
    EXPECT_EQ(status.code(), Code::timeout);
    EXPECT_THAT(status.message(), HasSubstr("received nothing from PE 2"));
    EXPECT_THAT(dest, Each(std::byte{0}));
}

}  // namespace

}  // namespace npushmem::coll
