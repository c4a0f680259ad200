#include "core/coll/broadcast_ring.hpp"

#include <gmock/gmock.h>

#include <array>
#include <cstring>
#include <vector>

#include "tests/unit/core/coll/threads_as_members.hpp"

namespace npushmem::coll {
namespace {

using ::testing::AllOf;
using ::testing::Each;
using ::testing::HasSubstr;

// `bool`: oversubscribed, who waits may sleep until it is woken.
using BroadcastRingMembers = test::ThreadsAsMembers<BroadcastRing, bool>;
using test::sleeps_at_once;
using test::yields;

// What is sent in a round: a length that all know, and bytes that tell rounds and roots apart.
std::uint64_t length(int round) { return static_cast<std::uint64_t>(round * 7) % (BroadcastRing::max_payload + 1); }
std::byte content(int root, int round, std::uint64_t i) {
    return static_cast<std::byte>(root * 31 + round * 5 + static_cast<int>(i));
}

// Roots of some calls in a row, in turn: there is no barrier, so each runs ahead as far as it may.
void broadcast_and_compare(BroadcastRing& ring, int n, int me, int rounds) {
    std::array<std::byte, BroadcastRing::max_payload> payload{};
    std::array<std::byte, BroadcastRing::max_payload> dest{};
    const std::array<std::byte, BroadcastRing::max_payload> wrong{};
    for (int round = 0; round < rounds; ++round) {
        const int root = round / 53 % n;
        const std::uint64_t count = length(round);
        for (std::uint64_t i = 0; i < count; ++i) payload[i] = content(root, round, i);
        dest.fill(std::byte{0});
        ASSERT_TRUE(ring.run(me == root ? payload.data() : wrong.data(), dest.data(), count, root).ok());
        ASSERT_EQ(std::memcmp(dest.data(), payload.data(), count), 0) << round;
    }
}

class BroadcastRingOf : public ::testing::TestWithParam<int> {};

TEST_P(BroadcastRingOf, BroadcastsFollowEachOtherWithoutABarrier) {
    BroadcastRingMembers members(GetParam(), yields, false);
    members.run([&](BroadcastRing& ring, int me) { broadcast_and_compare(ring, GetParam(), me, 1000); });
}

TEST_P(BroadcastRingOf, WakesThoseThatSleepWherePesAreCrowded) {
    BroadcastRingMembers members(GetParam(), sleeps_at_once, true);
    members.run([&](BroadcastRing& ring, int me) { broadcast_and_compare(ring, GetParam(), me, 200); });
}

INSTANTIATE_TEST_SUITE_P(Sizes, BroadcastRingOf, ::testing::Values(1, 2, 3, 5, 16));

TEST(BroadcastRing, WithoutADestOnlyTheOthersGetIt) {
    BroadcastRingMembers members(2, yields, false);
    BroadcastRing root = members.member(0, std::chrono::seconds{60});
    BroadcastRing other = members.member(1, std::chrono::seconds{60});
    const std::array<std::byte, 3> source{std::byte{1}, std::byte{2}, std::byte{3}};
    std::array<std::byte, 3> dest{};
    EXPECT_TRUE(root.run(source.data(), nullptr, 3, 0).ok());
    EXPECT_TRUE(other.run(nullptr, dest.data(), 3, 0).ok());
    EXPECT_EQ(dest, source);
}

TEST(BroadcastRing, ARootIsAheadOfTheOthersByTheDepthAtMost) {
    BroadcastRingMembers members(2, yields, false);
    BroadcastRing root = members.member(0, std::chrono::milliseconds{5});
    BroadcastRing other = members.member(1, std::chrono::milliseconds{5});
    for (std::uint64_t call = 0; call < BroadcastRing::depth; ++call) {
        const auto payload = static_cast<std::byte>(call + 1);
        EXPECT_TRUE(root.run(&payload, nullptr, 1, 0).ok()) << call;
    }
    const std::byte late{99};
    const Status status = root.run(&late, nullptr, 1, 0);
    EXPECT_EQ(status.code(), Code::timeout);
    EXPECT_THAT(status.message(), AllOf(HasSubstr("a small broadcast"), HasSubstr("nothing has come from PE 1")));
    for (std::uint64_t call = 0; call < BroadcastRing::depth; ++call) {
        std::byte dest{};
        ASSERT_TRUE(other.run(nullptr, &dest, 1, 0).ok());
        EXPECT_EQ(dest, static_cast<std::byte>(call + 1));
    }
}

// A root that comes round while the others have read everything, but told it some calls ago, goes on.
TEST(BroadcastRing, WhoHasReadEverythingIsNeverWaitedFor) {
    for (const int roots : {1, 2}) {
        BroadcastRingMembers members(2, yields, false);
        std::array<BroadcastRing, 2> ring{members.member(0, std::chrono::milliseconds{5}),
                                          members.member(1, std::chrono::milliseconds{5})};
        for (int call = 0; call < 300; ++call) {
            const auto root = static_cast<std::size_t>(call % roots);
            const auto payload = static_cast<std::byte>(call);
            std::byte dest{};
            ASSERT_TRUE(ring[root].run(&payload, nullptr, 1, static_cast<int>(root)).ok()) << call;
            ASSERT_TRUE(ring[1 - root].run(nullptr, &dest, 1, static_cast<int>(root)).ok()) << call;
            ASSERT_EQ(dest, payload);
        }
    }
}

TEST(BroadcastRing, ARootThatDoesNotCallIsNamed) {
    BroadcastRingMembers members(3, yields, false);
    BroadcastRing alone = members.member(1, std::chrono::milliseconds{5});
    std::array<std::byte, 4> dest{};
    const Status status = alone.run(nullptr, dest.data(), 4, 2);
    EXPECT_EQ(status.code(), Code::timeout);
    EXPECT_THAT(status.message(), HasSubstr("nothing has come from PE 2"));
    EXPECT_THAT(dest, Each(std::byte{0}));
}

}  // namespace
}  // namespace npushmem::coll
