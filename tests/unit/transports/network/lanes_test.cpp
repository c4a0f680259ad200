// SPDX-License-Identifier: BSD-3-Clause
// Queues to the same peer are independent.
#include <gmock/gmock.h>

#include "tests/unit/transports/network/network_world.hpp"

namespace npushmem::network {
namespace {

using fakes::World;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;

std::string next_event(World& world) {
    npushmem_event event{};
    return world.at(0).poll_event(event) == Code::ok ? event.message : "";
}

Code put_on(World& world, std::uint64_t queue, int to, std::size_t index, std::uint64_t value) {
    return world.finish([&] { return world.at(0).put(queue, world.rma(to, index, &value, 1), nullptr); });
}

Code quiet_on(World& world, std::uint64_t queue) {
    return world.finish([&] { return world.at(0).quiet(queue); });
}

class Lanes : public ::testing::TestWithParam<Delivery> {};

TEST_P(Lanes, OfOneQueueIsNotDelayedByAnother) {
    World world(GetParam());
    world.start();
    const std::uint64_t other = world.at(0).create_queue().value();
    ASSERT_EQ(put_on(world, world.queue[0], 1, 0, 1), Code::ok);
    ASSERT_EQ(world.quiet(), Code::ok);
    world.network.hold = std::pair(0, 0U);  // what the first queue sends stays where it is
    ASSERT_EQ(put_on(world, world.queue[0], 1, 0, 5), Code::ok);
    ASSERT_EQ(put_on(world, other, 1, 1, 6), Code::ok);
    EXPECT_EQ(world.at(0).fence(other), Code::ok);
    ASSERT_EQ(put_on(world, other, 1, 2, 7), Code::ok);
    EXPECT_EQ(quiet_on(world, other), Code::ok);
    EXPECT_EQ(world.word(1, 1), 6U);
    EXPECT_EQ(world.word(1, 2), 7U);
    EXPECT_EQ(world.word(1, 0), 1U);
    world.network.hold = {};
    EXPECT_EQ(world.quiet(), Code::ok);
    EXPECT_EQ(world.word(1, 0), 5U);
}

TEST_P(Lanes, AreTakenPerPeerAndServeTheNextQueue) {
    World world(GetParam());
    world.start();
    const std::uint64_t second = world.at(0).create_queue().value();
    const std::uint64_t elsewhere = world.at(0).create_queue().value();
    ASSERT_EQ(put_on(world, world.queue[0], 1, 0, 1), Code::ok);
    ASSERT_EQ(put_on(world, elsewhere, 2, 0, 2), Code::ok);
    EXPECT_THAT(world.wires[0]->used, ElementsAre(LaneId{1, 0}, LaneId{2, 0}));
    ASSERT_EQ(put_on(world, second, 1, 1, 3), Code::ok);
    ASSERT_EQ(put_on(world, second, 2, 1, 3), Code::ok);
    for (const auto queue : {second, elsewhere}) {
        EXPECT_EQ(quiet_on(world, queue), Code::ok);
        EXPECT_EQ(world.at(0).destroy_queue(queue), Code::ok);
    }
    const std::uint64_t third = world.at(0).create_queue().value();
    EXPECT_EQ(put_on(world, third, 1, 1, 4), Code::ok);
    EXPECT_EQ(put_on(world, third, 2, 1, 4), Code::ok);
    EXPECT_EQ(quiet_on(world, third), Code::ok);
    EXPECT_THAT(world.wires[0]->used, ElementsAre(LaneId{1, 0}, LaneId{2, 0}, LaneId{1, 1}, LaneId{2, 1}));
    EXPECT_THAT(world.wires[0]->closed, IsEmpty());
}

TEST_P(Lanes, AreNotMadeForUnusedQueues) {
    World world(GetParam());
    world.start();
    for (int i = 0; i < 5; ++i) EXPECT_EQ(world.at(0).destroy_queue(world.at(0).create_queue().value()), Code::ok);
    EXPECT_EQ(put_on(world, world.queue[0], 1, 0, 1), Code::ok);
    EXPECT_EQ(world.quiet(), Code::ok);
    EXPECT_THAT(world.wires[0]->used, ElementsAre(LaneId{1, 0}));
}

TEST_P(Lanes, AreSharedWhenThereAreNoMore) {
    NetworkSettings settings = World::quiet_settings();
    settings.lanes = 2;
    World world(GetParam(), 1, settings);
    world.start();
    std::vector<std::uint64_t> queues;
    for (std::size_t i = 0; i < 6; ++i) {
        queues.push_back(world.at(0).create_queue().value());
        ASSERT_EQ(put_on(world, queues[i], 1, i, 10 + i), Code::ok);
    }
    for (std::size_t i = 6; i-- > 0;) {
        EXPECT_EQ(quiet_on(world, queues[i]), Code::ok);
        EXPECT_EQ(world.word(1, i), 10 + i);
        EXPECT_EQ(world.at(0).destroy_queue(queues[i]), Code::ok);
    }
    EXPECT_THAT(world.wires[0]->used, ElementsAre(LaneId{1, 0}, LaneId{1, 1}));
}

TEST_P(Lanes, AreLostForTheirUsersOnly) {
    World world(GetParam());
    world.start();
    const std::uint64_t second = world.at(0).create_queue().value();
    ASSERT_EQ(put_on(world, world.queue[0], 1, 0, 1), Code::ok);
    ASSERT_EQ(quiet_on(world, world.queue[0]), Code::ok);
    std::uint64_t value = 2;
    ASSERT_EQ(world.at(0).put(second, world.rma(1, 1, &value, 1), nullptr), Code::ok);
    world.wires[0]->lose_lane = LaneId{1, 1};
    ASSERT_EQ(put_on(world, world.queue[0], 1, 2, 3), Code::ok);
    EXPECT_EQ(world.quiet(), Code::ok);
    EXPECT_EQ(world.word(1, 2), 3U);
    EXPECT_EQ(next_event(world), "") << "reported to a queue that has not lost anything";
    EXPECT_EQ(quiet_on(world, second), Code::range);
    EXPECT_EQ(quiet_on(world, second), Code::ok) << "reported twice";
    EXPECT_EQ(put_on(world, second, 1, 1, 4), Code::range);
    EXPECT_THAT(next_event(world), HasSubstr("a context's own lane to PE 1 on host elsewhere is lost"));
    EXPECT_EQ(world.at(0).destroy_queue(second), Code::ok);
    EXPECT_THAT(world.wires[0]->closed, ElementsAre(LaneId{1, 1}));  // to be made anew
    const std::uint64_t third = world.at(0).create_queue().value();
    EXPECT_EQ(put_on(world, third, 1, 1, 5), Code::ok);
    EXPECT_EQ(quiet_on(world, third), Code::ok);
    EXPECT_EQ(world.word(1, 1), 5U);
}

TEST_P(Lanes, AreNotReusedWhenLost) {
    NetworkSettings settings = World::quiet_settings();
    settings.lanes = 2;
    World world(GetParam(), 1, settings);
    world.start();
    const std::uint64_t second = world.at(0).create_queue().value();
    std::uint64_t value = 2;
    for (const auto queue : {world.queue[0], second})
        ASSERT_EQ(world.at(0).put(queue, world.rma(1, 1, &value, 1), nullptr), Code::ok);
    world.wires[0]->lose_lane = LaneId{1, 1};
    EXPECT_EQ(quiet_on(world, second), Code::range);
    const std::uint64_t third = world.at(0).create_queue().value();
    EXPECT_EQ(put_on(world, third, 1, 1, 5), Code::ok);
    EXPECT_EQ(quiet_on(world, third), Code::ok);
}

// A message that the network rejects loses its lane. Each operation on the lane ends once, even when later operations
// reuse its slot.
TEST_P(Lanes, LostBySendingEndEachOperationOnce) {
    for (const int lost_lane : {0, 1}) {
        World world(GetParam());
        world.start();
        const std::uint64_t second = world.at(0).create_queue().value();
        ASSERT_EQ(put_on(world, world.queue[0], 1, 0, 1), Code::ok);
        ASSERT_EQ(put_on(world, second, 1, 0, 1), Code::ok);
        ASSERT_EQ(quiet_on(world, second), Code::ok);
        ASSERT_EQ(world.quiet(), Code::ok);
        const std::uint64_t queue = lost_lane == 0 ? world.queue[0] : second;
        const auto add = world.atomic(1, NPUSHMEM_ATOMIC_ADD, 3, 2);
        ASSERT_EQ(world.finish([&] { return world.at(0).atomic(queue, add, nullptr); }), Code::ok);
        std::uint64_t old = 0;
        auto fetch = world.atomic(1, NPUSHMEM_ATOMIC_FETCH_ADD, 3, 2);
        fetch.result = &old;
        world.wires[0]->refuse = LaneId{1, static_cast<std::uint32_t>(lost_lane)};
        EXPECT_EQ(world.at(0).atomic(queue, fetch, nullptr), Code::range);
        EXPECT_EQ(quiet_on(world, queue), lost_lane == 0 ? Code::unreachable : Code::range);
        EXPECT_EQ(quiet_on(world, queue), Code::ok);
        const std::uint64_t third = world.at(0).create_queue().value();
        for (std::size_t i = 0; i < 8; ++i) ASSERT_EQ(put_on(world, third, 2, i, 20 + i), Code::ok);
        EXPECT_EQ(quiet_on(world, third), Code::ok);
        for (std::size_t i = 0; i < 8; ++i) EXPECT_EQ(world.word(2, i), 20 + i);
    }
}

TEST_P(Lanes, EndWithTheirPeer) {
    World world(GetParam());
    world.start();
    const std::uint64_t second = world.at(0).create_queue().value();
    std::uint64_t value = 2;
    for (const auto queue : {world.queue[0], second})
        ASSERT_EQ(world.at(0).put(queue, world.rma(1, 1, &value, 1), nullptr), Code::ok);
    world.wires[0]->lose = 1;
    EXPECT_EQ(quiet_on(world, second), Code::peer_dead);
    EXPECT_EQ(quiet_on(world, world.queue[0]), Code::peer_dead);
    EXPECT_EQ(put_on(world, second, 1, 1, 4), Code::peer_dead);
}

// Requests without an answer that fail at the target.
TEST_P(Lanes, ReportAFailureToTheRequestingQueue) {
    World world(GetParam());
    world.start();
    const std::uint64_t second = world.at(0).create_queue().value();
    ASSERT_EQ(put_on(world, world.queue[0], 1, 0, 1), Code::ok);
    ASSERT_EQ(world.quiet(), Code::ok);
    ASSERT_EQ(world.at(1).deregister_memory(1), Code::ok);
    const auto add = world.atomic(1, NPUSHMEM_ATOMIC_ADD, 3, 2);
    ASSERT_EQ(world.finish([&] { return world.at(0).atomic(second, add, nullptr); }), Code::ok);
    for (int i = 0; i < 20; ++i) world.step();
    ASSERT_EQ(put_on(world, world.queue[0], 1, 0, 2), Code::ok);
    EXPECT_EQ(world.quiet(), Code::ok);
    EXPECT_EQ(quiet_on(world, second), Code::range);
}

// The hello uses lane 0, and may arrive after a request on another lane.
TEST_P(Lanes, MayCarryRequestsBeforeTheHello) {
    for (unsigned seed = 1; seed <= 20; ++seed) {
        World world(GetParam(), seed);
        world.start(false);
        world.words[1][3] = 40;
        std::uint64_t ignored = 0;
        auto first = world.atomic(1, NPUSHMEM_ATOMIC_FETCH_ADD, 4, 1);
        first.result = &ignored;
        ASSERT_EQ(world.finish([&] { return world.at(0).atomic(world.queue[0], first, nullptr); }), Code::ok);
        const std::uint64_t second = world.at(0).create_queue().value();
        std::uint64_t old = 0;
        auto op = world.atomic(1, NPUSHMEM_ATOMIC_FETCH_ADD, 3, 2);
        op.result = &old;
        ASSERT_EQ(world.finish([&] { return world.at(0).atomic(second, op, nullptr); }), Code::ok);
        EXPECT_EQ(quiet_on(world, second), Code::ok) << "seed " << seed;
        EXPECT_EQ(old, 40U);
        EXPECT_EQ(world.quiet(), Code::ok);
    }
}

INSTANTIATE_TEST_SUITE_P(NetworkTransport, Lanes,
                         ::testing::Values(Delivery::in_order, Delivery::on_completion, Delivery::on_flush,
                                           Delivery::in_order_on_completion));

}  // namespace
}  // namespace npushmem::network
