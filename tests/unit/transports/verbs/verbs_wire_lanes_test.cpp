// SPDX-License-Identifier: BSD-3-Clause
// Lanes of contexts to a peer, other than lane 0.
#include <gmock/gmock.h>

#include "tests/unit/transports/verbs/verbs_world.hpp"

namespace npushmem::verbs {
namespace {

using network::WireContext;
using test::World;
using ::testing::HasSubstr;
using ::testing::IsEmpty;
using ::testing::SizeIs;

TEST(VerbsWire, ALaneHasAQueuePairOfItsOwnAtEachEnd) {
    World world;
    world.start();
    world.connect();
    const std::size_t before = world.verbs->reliable_pairs.size();
    world.write_over(2, 5, 7);
    EXPECT_EQ(world.verbs->reliable_pairs.size(), before + 2);
    world.write_over(2, 5, 8);
    EXPECT_EQ(world.verbs->reliable_pairs.size(), before + 2);
    ASSERT_EQ(world.retry_until_posted([&] { return world.at(0).send({1, 2}, Bytes(8), {}); }), Code::ok);
    world.drive();
    EXPECT_THAT(world.listeners[1].messages, SizeIs(1));
    // The peer's sends over its lane with the same number are independent of this lane.
    WireContext context;
    const std::uint64_t value = 9;
    ASSERT_EQ(world.write(1, 6, &value, sizeof value, context, 2), Code::ok);
    world.drive();
    EXPECT_EQ(world.words[0][6], 9U);
    EXPECT_EQ(world.verbs->reliable_pairs.size(), before + 4);
}

TEST(VerbsWire, ALaneOtherThanTheFirstMayBeUsedFirst) {
    World world;
    world.start();
    world.write_over(1, 5, 7);
}

TEST(VerbsWire, AClosedLaneIsRecreatedWithoutLeaks) {
    World world;
    world.start();
    world.connect();
    world.write_over(1, 5, 7);
    const std::size_t open = world.verbs->objects();
    for (std::uint64_t round = 1; round <= 5; ++round) {
        world.at(0).close({1, 1});
        world.drive();
        EXPECT_EQ(world.verbs->objects(), open - 1) << "its own end";
        world.write_over(0, 6, round);
        world.verbs->drop_datagrams = round % 2 == 0 ? 1 : 0;
        WireContext context;
        const std::uint64_t value = 10 + round;
        EXPECT_EQ(world.at(0).write(world.place(0, 5, 1), &value, 8, context), Code::again);
        world.drive();
        world.now += std::chrono::milliseconds(100);
        world.drive();
        world.write_over(1, 5, value);
        EXPECT_EQ(world.verbs->objects(), open);
    }
    EXPECT_THAT(world.listeners[0].losses, IsEmpty());
    EXPECT_THAT(world.listeners[1].losses, IsEmpty());
}

TEST(VerbsWire, ALaneClosedWithOperationsInFlightIsDestroyedWhenTheyEnd) {
    World world;
    world.start();
    world.connect();
    world.write_over(1, 5, 7);
    const std::size_t open = world.verbs->objects();
    world.verbs->holds = true;
    WireContext context;
    const std::uint64_t value = 8;
    ASSERT_EQ(world.at(0).write(world.place(0, 5, 1), &value, 8, context), Code::ok);
    world.at(0).close({1, 1});
    world.verbs->holds = false;
    world.drive();
    EXPECT_NE(world.listeners[0].done.at(&context), Code::ok);
    EXPECT_THAT(world.listeners[0].losses, IsEmpty()) << "whoever has the lane next would lose it";
    EXPECT_EQ(world.verbs->objects(), open - 1);
    world.write_over(1, 5, 9);
}

TEST(VerbsWire, AnErrorOnALaneLosesOnlyThatLane) {
    World world;
    world.start();
    world.connect();
    world.write_over(1, 5, 7);
    world.verbs->next_status = IBV_WC_REM_ACCESS_ERR;
    WireContext context;
    const std::uint64_t value = 8;
    ASSERT_EQ(world.write(0, 5, &value, sizeof value, context, 1), Code::ok);
    world.drive();
    EXPECT_EQ(world.listeners[0].done.at(&context), Code::range);
    ASSERT_THAT(world.listeners[0].losses, SizeIs(1));
    EXPECT_EQ(world.listeners[0].losses[0].lane, 1U);
    EXPECT_EQ(world.listeners[0].losses[0].code, Code::range);
    world.write_over(0, 6, 10);
    world.write_over(2, 7, 11);
}

TEST(VerbsWire, ALaneWithoutAQueuePairIsReportedWithARemedy) {
    World world;
    world.start();
    world.connect();
    world.verbs->fail("create_qp", ENOMEM);
    WireContext context;
    const std::uint64_t value = 8;
    EXPECT_EQ(world.write(0, 5, &value, sizeof value, context, 1), Code::system);
    EXPECT_THAT(world.at(0).last_error(), HasSubstr("NPUSHMEM_VERBS_LANES"));
    world.verbs->clear_fault("create_qp");
    world.verbs->fail("create_qp", ENOMEM, 1);  // at the peer
    EXPECT_EQ(world.write(0, 5, &value, sizeof value, context, 2), Code::system);
    ASSERT_THAT(world.listeners[0].losses, SizeIs(1));
    EXPECT_EQ(world.listeners[0].losses[0].lane, 2U);
    EXPECT_THAT(world.listeners[0].losses[0].why, HasSubstr("the peer could not create a queue pair"));
    world.verbs->clear_fault("create_qp");
    world.write_over(0, 5, 9);
    world.at(0).close({1, 2});
    world.write_over(2, 5, 10);
}

// A device may drop it with the queue pair, and its receive.
TEST(VerbsWire, MessagesThatArrivedBeforeALaneIsRecreatedAreDelivered) {
    World world;
    world.start();
    world.connect();
    world.write_over(1, 5, 7);
    const std::uint32_t theirs = world.verbs->reliable_pairs.back();
    const std::size_t open = world.verbs->objects();
    constexpr int polled_at_once = 16;
    for (int i = 1; i < polled_at_once; ++i) ASSERT_EQ(world.at(0).send({1}, Bytes(8), {}), Code::ok);
    (void)world.at(0).progress(world.listeners[0]);
    world.at(0).close({1, 1});
    EXPECT_EQ(world.at(0).send({1, 1}, Bytes(8), {}), Code::again) << "it asks";
    (void)world.at(0).progress(world.listeners[0]);
    world.verbs->arrive(theirs);
    world.drive();
    EXPECT_THAT(world.listeners[1].messages, SizeIs(polled_at_once));
    EXPECT_EQ(world.verbs->objects(), open) << "the old ones have gone";
}

// Each queue pair reserves an entry of the completion queue for the request that ends its burst.
TEST(VerbsWire, AnExhaustedCompletionQueueIsReportedWithARemedy) {
    World world;
    world.verbs->add_device("fake0").attributes.max_cqe = 720;
    world.devices = 1;
    world.settings.queue_depth = 16;
    world.start();
    world.connect();
    Code code = Code::ok;
    std::uint32_t lane = 0;
    WireContext context;
    for (const std::uint64_t value = 1; code == Code::ok && lane < 1024;)
        code = world.write(0, 5, &value, sizeof value, context, ++lane);
    EXPECT_EQ(code, Code::system);
    EXPECT_THAT(world.at(0).last_error(), ::testing::AllOf(HasSubstr("use all 720 entries of the completion queue"),
                                                           HasSubstr("NPUSHMEM_VERBS_LANES")));
    world.drive();
    EXPECT_THAT(world.listeners[0].losses, IsEmpty());
    world.write_over(1, 6, 7);
}

}  // namespace
}  // namespace npushmem::verbs
