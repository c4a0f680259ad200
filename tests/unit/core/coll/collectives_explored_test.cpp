// SPDX-License-Identifier: BSD-3-Clause
// The synchronisation of the collective operations in every order: several calls in a row.
#include <gmock/gmock.h>

#include "tests/unit/core/coll/explored_group.hpp"

namespace npushmem::coll {
namespace {

using ::testing::IsEmpty;

std::vector<std::int32_t> one_of_each(int call, int members) {
    std::vector<std::int32_t> all;
    all.reserve(static_cast<std::size_t>(members));
    for (int member = 0; member < members; ++member) all.push_back(value_of(call, member));
    return all;
}

// The root changes, so that a member is root while another is already in the next call.
const Call broadcasts{[](Group& group, int call) {
                          return broadcast(group, dest_of(call), source_of(call), 4, call % group.size(), true);
                      },
                      [](int call, int, int members) { return std::vector{value_of(call, call % members)}; }};
const Call sums{[](Group& group, int call) {
                    return reduce(group, dest_of(call), source_of(call), 1, ReduceOperation::sum, ReduceElement::i32);
                },
                [](int call, int, int members) {
                    std::int32_t sum = 0;
                    for (const std::int32_t one : one_of_each(call, members)) sum += one;
                    return std::vector{sum};
                }};
const Call scattered_sums{[](Group& group, int call) {
                              return reduce_scatter(group, dest_of(call), source_of(call), 1, ReduceOperation::sum,
                                                    ReduceElement::i32);
                          },
                          [](int call, int, int members) {
                              std::int32_t sum = 0;
                              for (const std::int32_t one : one_of_each(call, members)) sum += one;
                              return std::vector{sum};
                          }};
const Call scans{
    [](Group& group, int call) { return scan(group, dest_of(call), source_of(call), 1, true, ReduceElement::i32); },
    [](int call, int member, int) {
        std::int32_t sum = 0;
        for (const std::int32_t one : one_of_each(call, member + 1)) sum += one;
        return std::vector{sum};
    }};
const Call fcollects{[](Group& group, int call) { return fcollect(group, dest_of(call), source_of(call), 4); },
                     [](int call, int, int members) { return one_of_each(call, members); }};
const Call exchanges{[](Group& group, int call) { return alltoall(group, dest_of(call), source_of(call), 4); },
                     [](int call, int, int members) { return one_of_each(call, members); }};
const Call collects{[](Group& group, int call) { return collect(group, dest_of(call), source_of(call), 4, area); },
                    [](int call, int, int members) { return one_of_each(call, members); }};

TEST(LeaderExchange, PayloadsFillItsAreas) {
    EXPECT_EQ(LeaderExchange::payload_bytes(8), 4096U);
    EXPECT_EQ(LeaderExchange::block_bytes(4), 4096U);
    EXPECT_EQ(LeaderExchange::block_bytes(8), 1024U);
    for (int members = 2; members <= LeaderExchange::max_members; ++members) {
        const auto n = static_cast<std::uint64_t>(members);
        EXPECT_LE(n * LeaderExchange::payload_bytes(members), LeaderExchange::area_bytes) << members;
        EXPECT_LE(n * n * LeaderExchange::block_bytes(members), LeaderExchange::area_bytes) << members;
    }
}

TEST(CollectivesExplored, BackToBackCallsOfTwo) {
    EXPECT_THAT(explore("broadcast", 2, broadcasts), IsEmpty());
    EXPECT_THAT(explore("reduce", 2, sums), IsEmpty());
    EXPECT_THAT(explore("reduce_scatter", 2, scattered_sums), IsEmpty());
    EXPECT_THAT(explore("scan", 2, scans), IsEmpty());
    EXPECT_THAT(explore("fcollect", 2, fcollects), IsEmpty());
    EXPECT_THAT(explore("alltoall", 2, exchanges), IsEmpty());
    EXPECT_THAT(explore("collect", 2, collects), IsEmpty());
}

TEST(CollectivesExplored, BackToBackCallsOfTwoHostsWithTwoMembers) {
    const auto add = [](Group& group, int call, auto&& method) {
        return method(group, dest_of(call), source_of(call), 1, Reduction(ReduceOperation::sum, ReduceElement::i32));
    };
    EXPECT_THAT(explore("broadcast", 4,
                        {[](Group& group, int call) {
                             return broadcast_by_hosts(group, dest_of(call), source_of(call), 4, call % 4, true);
                         },
                         broadcasts.expected}),
                IsEmpty());
    EXPECT_THAT(explore("broadcast by parts", 4,
                        {[](Group& group, int call) {
                             return broadcast_by_parts(group, dest_of(call), source_of(call), 4, call % 4, true);
                         },
                         broadcasts.expected}),
                IsEmpty());
    EXPECT_THAT(
        explore("fcollect", 4,
                {[](Group& group, int call) { return fcollect_by_hosts(group, dest_of(call), source_of(call), 4); },
                 fcollects.expected}),
        IsEmpty());
    EXPECT_THAT(explore("reduce", 4,
                        {[&](Group& group, int call) { return add(group, call, reduce_by_hosts); }, sums.expected}),
                IsEmpty());
    EXPECT_THAT(explore("reduce by parts", 4,
                        {[&](Group& group, int call) { return add(group, call, reduce_by_parts); }, sums.expected}),
                IsEmpty());
}

TEST(CollectivesExplored, BackToBackCallsOfThree) {
    EXPECT_THAT(explore("broadcast", 3, broadcasts), IsEmpty());
    EXPECT_THAT(explore("reduce", 3, sums), IsEmpty());
    EXPECT_THAT(explore("reduce_scatter", 3, scattered_sums), IsEmpty());
    EXPECT_THAT(explore("scan", 3, scans), IsEmpty());
    EXPECT_THAT(explore("fcollect", 3, fcollects), IsEmpty());
    EXPECT_THAT(explore("alltoall", 3, exchanges), IsEmpty());
    EXPECT_THAT(explore("collect", 3, collects), IsEmpty());
}

Call by(Status (*method)(Group&, std::uint64_t, std::uint64_t, std::uint64_t, const Reduction&), std::uint64_t count,
        bool in_place = false) {
    return {[=](Group& group, int call) {
                const std::uint64_t source = in_place ? dest_of(call) : source_of(call);
                if (in_place)
                    std::memcpy(group.mapped_address(group.index(), dest_of(call)),
                                group.mapped_address(group.index(), source_of(call)), area);
                return method(group, dest_of(call), source, count, Reduction(ReduceOperation::sum, ReduceElement::i32));
            },
            [=](int call, int, int members) { return std::vector(count, sums.expected(call, 0, members).front()); }};
}

const Call broadcasts_of_one{
    [](Group& group, int call) { return broadcast(group, dest_of(call), source_of(call), 4, 0, true); },
    [](int call, int, int) { return std::vector{value_of(call, 0)}; }};
const Call broadcasts_by_parts{[](Group& group, int call) {
                                   return broadcast_by_parts(group, dest_of(call), source_of(call), 4,
                                                             call % group.size(), true);
                               },
                               broadcasts.expected};

TEST(CollectivesExplored, BackToBackCallsOfTwoHostsWithSignals) {
    EXPECT_THAT(explore("fcollect by lines", 4, fcollects, Fault::none, {2, true}), IsEmpty());
    EXPECT_THAT(explore("alltoall by lines", 4, exchanges, Fault::none, {2, true}), IsEmpty());
    EXPECT_THAT(explore("broadcast by lines", 4, broadcasts, Fault::none, {3, true, 5}), IsEmpty());
    EXPECT_THAT(explore("broadcast of one root by lines", 4, broadcasts_of_one, Fault::none, {3, true, 5}), IsEmpty());
    EXPECT_THAT(explore("fcollect with signals", 4, fcollects, Fault::none, {2}), IsEmpty());
    EXPECT_THAT(explore("broadcast with signals", 4, broadcasts, Fault::none, {3}), IsEmpty());
    EXPECT_THAT(explore("broadcast of one root with signals", 4, broadcasts_of_one, Fault::none, {3, false, 5}),
                IsEmpty());
    EXPECT_THAT(explore("broadcast by parts with signals", 4, broadcasts_by_parts, Fault::none, {3}), IsEmpty());
    EXPECT_THAT(explore("sum with signals", 4, sums, Fault::none, {2}), IsEmpty());
    EXPECT_THAT(explore("sum by parts with signals", 4, by(reduce_by_parts, 1), Fault::none, {2}), IsEmpty());
}

TEST(CollectivesExplored, BroadcastsWithRoomForTwoHaveAnExchangeBeforeEveryThird) {
    const std::vector<std::vector<int>> hosts{{0, 1}, {2, 3}};
    const Signals room_for_two{8, true, 5, hosts, LeaderExchange::areas, 128};
    EXPECT_THAT(explore("broadcast", 4, broadcasts, Fault::none, room_for_two), IsEmpty());
    EXPECT_THAT(explore("broadcast of one root", 4, broadcasts_of_one, Fault::none, room_for_two), IsEmpty());
}

// An exchange frees the memory of the broadcasts before it, and uses an area of its own.
TEST(CollectivesExplored, BroadcastsAndExchangesInTurn) {
    const std::vector<std::vector<int>> hosts{{0, 1}, {2, 3}};
    const std::vector<std::vector<int>> uneven{{0, 1}, {2}};
    for (const unsigned exchanges_at : {0b01010U, 0b10101U, 0b00100U, 0b01100U}) {
        const auto is_exchange = [exchanges_at](int call) { return (exchanges_at >> call & 1U) != 0; };
        const Call mixed{[is_exchange](Group& group, int call) {
                             return (is_exchange(call) ? fcollects : broadcasts).run(group, call);
                         },
                         [is_exchange](int call, int member, int members) {
                             return (is_exchange(call) ? fcollects : broadcasts).expected(call, member, members);
                         }};
        const Signals room_for_one{8, true, 5, hosts, LeaderExchange::areas, 64};
        EXPECT_THAT(explore("broadcasts and fcollects", 4, mixed, Fault::none, room_for_one), IsEmpty());
        const Signals few_turns{3, true, 5, uneven, LeaderExchange::areas, 128};
        EXPECT_THAT(explore("broadcasts and fcollects", 3, mixed, Fault::none, few_turns), IsEmpty());
    }
}

TEST(CollectivesExplored, BackToBackSumsOfWholePartsWithSignals) {
    EXPECT_THAT(explore("sum of whole parts", 4, by(reduce_by_parts, 4), Fault::none, {2}), IsEmpty());
    EXPECT_THAT(explore("the same in place", 4, by(reduce_by_parts, 4, true), Fault::none, {2}), IsEmpty());
}

TEST(CollectivesExplored, BackToBackCallsOfUnevenAndOfThreeHostsWithSignals) {
    const std::vector<std::vector<int>> uneven{{0, 1}, {2}};
    const std::vector<std::vector<int>> single{{0}, {1}, {2}};
    EXPECT_THAT(explore("fcollect by lines", 3, fcollects, Fault::none, {2, true, 3, uneven}), IsEmpty());
    EXPECT_THAT(explore("broadcast by lines", 3, broadcasts, Fault::none, {3, true, 5, uneven}), IsEmpty());
    EXPECT_THAT(explore("alltoall with signals", 3, exchanges, Fault::none, {2, false, 3, uneven}), IsEmpty());
    EXPECT_THAT(explore("fcollect by lines of three hosts", 3, fcollects, Fault::none, {2, true, 3, single}),
                IsEmpty());
    EXPECT_THAT(
        explore("broadcast by parts of three hosts", 3, broadcasts_by_parts, Fault::none, {4, false, 3, single}),
        IsEmpty());
}

// The exploration must find these.

TEST(CollectivesExplored, FindsTooFewTurnsOfSignals) {
    EXPECT_EQ(explore("fcollect by lines of one turn", 4, fcollects, Fault::none, {1, true}), "deadlock");
    EXPECT_EQ(explore("broadcast by lines of two turns", 4, broadcasts, Fault::none, {2, true}), "deadlock");
    EXPECT_EQ(explore("broadcast of one root by lines of two turns", 4, broadcasts_of_one, Fault::none, {2, true, 5}),
              "deadlock");
}

TEST(CollectivesExplored, FindsTooFewAreasOfExchanges) {
    const std::vector<std::vector<int>> hosts{{0, 1}, {2, 3}};
    EXPECT_EQ(explore("fcollect by one area", 4, fcollects, Fault::none, {2, true, 3, hosts, 1}), "wrong result");
}

TEST(CollectivesExplored, FindsAnOverwrittenWorkspace) {
    EXPECT_EQ(explore("reduce with one half", 2, sums, Fault::one_half), "wrong result");
}

TEST(CollectivesExplored, FindsIncompletePuts) {
    EXPECT_EQ(explore("fcollect without completion", 2, fcollects, Fault::no_completion), "wrong result");
    EXPECT_EQ(explore("broadcast without completion", 2, broadcasts, Fault::no_completion), "wrong result");
}

TEST(CollectivesExplored, FindsFaultsOfCollectivesByHosts) {
    const Call broadcasts_by_parts{[](Group& group, int call) {
                                       return broadcast_by_parts(group, dest_of(call), source_of(call), 4, call % 4,
                                                                 true);
                                   },
                                   broadcasts.expected};
    EXPECT_EQ(explore("broadcast by parts without sync", 4, broadcasts_by_parts, Fault::no_sync), "wrong result");
    EXPECT_EQ(explore("broadcast by parts without completion", 4, broadcasts_by_parts, Fault::no_completion),
              "wrong result");
    const Call fcollects_by_hosts{
        [](Group& group, int call) { return fcollect_by_hosts(group, dest_of(call), source_of(call), 4); },
        fcollects.expected};
    EXPECT_EQ(explore("fcollect by hosts without sync", 4, fcollects_by_hosts, Fault::no_sync), "wrong result");
    EXPECT_EQ(explore("fcollect by hosts without completion", 4, fcollects_by_hosts, Fault::no_completion),
              "wrong result");
}

TEST(CollectivesExplored, FindsASyncThatDoesNotWait) {
    EXPECT_EQ(explore("reduce without sync", 2, sums, Fault::no_sync), "wrong result");
    EXPECT_EQ(explore("reduce_scatter without sync", 2, scattered_sums, Fault::no_sync), "wrong result");
    EXPECT_EQ(explore("broadcast without sync", 3, broadcasts, Fault::no_sync), "wrong result");
}

}  // namespace
}  // namespace npushmem::coll
