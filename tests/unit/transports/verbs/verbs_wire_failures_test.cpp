// SPDX-License-Identifier: BSD-3-Clause
// Failures of peers, memory and the device.
#include "transports/verbs/verbs_wire.hpp"

#include <gmock/gmock.h>

#include <array>
#include <numeric>

#include "tests/unit/transports/verbs/verbs_world.hpp"

namespace npushmem::verbs {
namespace {

using network::WireContext;
using test::atomic_op;
using test::World;
using ::testing::AllOf;
using ::testing::Contains;
using ::testing::Each;
using ::testing::HasSubstr;
using ::testing::IsEmpty;
using ::testing::SizeIs;

TEST(VerbsWire, APeerThatDoesNotAcknowledgeIsLostWithItsOperations) {
    World world;
    world.start();
    world.connect();
    world.verbs->holds = true;
    std::array<WireContext, 40> contexts;
    const std::uint64_t value = 1;
    for (auto& context : contexts) ASSERT_EQ(world.at(0).write(world.place(0, 0), &value, 8, context), Code::ok);
    world.verbs->next_status = IBV_WC_RETRY_EXC_ERR;
    world.verbs->holds = false;
    world.drive();
    for (auto& context : contexts) EXPECT_EQ(world.listeners[0].done.at(&context), Code::peer_dead);
    ASSERT_FALSE(world.listeners[0].losses.empty());
    EXPECT_EQ(world.listeners[0].losses[0].pe, 1);
    EXPECT_THAT(world.listeners[0].losses[0].why,
                AllOf(HasSubstr("work request "), HasSubstr("transport retry counter exceeded (status 12"),
                      HasSubstr("NPUSHMEM_IB_TIMEOUT")));
    EXPECT_EQ(world.at(0).write(world.place(0, 0), &value, 8, contexts[0]), Code::peer_dead);
    EXPECT_THAT(world.at(0).last_error(), HasSubstr("transport retry counter exceeded"));
}

TEST(VerbsWire, ADeregisteredKeyIsARangeError) {
    World world;
    world.start();
    world.connect();
    world.at(1).deregister_memory(world.number[1]);
    WireContext context;
    const std::uint64_t value = 1;
    ASSERT_EQ(world.write(0, 0, &value, 8, context), Code::ok);
    world.drive();
    EXPECT_EQ(world.listeners[0].done.at(&context), Code::range);
    EXPECT_THAT(world.listeners[0].whys, Contains(HasSubstr("deregistered")));
}

TEST(VerbsWire, AChunkThatThePeerCannotRegisterFailsTheOperationAndNotThePeer) {
    World world;
    world.start();
    world.connect();
    world.verbs->fail("reg_mr", ENOMEM);
    WireContext context;
    const std::uint64_t value = 1;
    ASSERT_EQ(world.write(0, 1024, &value, 8, context), Code::ok);
    world.drive();
    EXPECT_EQ(world.listeners[0].done.at(&context), Code::memory);
    EXPECT_THAT(world.listeners[0].whys,
                Contains(AllOf(HasSubstr("the peer reports: ibv_reg_mr"), HasSubstr("Cannot allocate"))));
    EXPECT_THAT(world.listeners[0].losses, IsEmpty());
    world.verbs->clear_fault("reg_mr");
    ASSERT_EQ(world.write(0, 1024, &value, 8, context), Code::ok);
    world.drive();
    EXPECT_EQ(world.listeners[0].done.at(&context), Code::ok);
}

TEST(VerbsWire, ARejectedChunkIsReportedOnlyToOperationsThatNeedIt) {
    World world;
    world.start();
    world.connect();
    world.verbs->fail("reg_mr", ENOMEM);
    WireContext refused;
    const std::uint64_t value = 1;
    ASSERT_EQ(world.at(0).write(world.place(0, 1024), &value, 8, refused), Code::again) << "its key is asked for";
    world.drive();
    WireContext other;
    ASSERT_EQ(world.write(0, 0, &value, 8, other), Code::ok);
    world.drive();
    EXPECT_EQ(world.listeners[0].done.at(&other), Code::ok);
    ASSERT_EQ(world.write(0, 1024, &value, 8, refused), Code::ok);
    world.drive();
    EXPECT_EQ(world.listeners[0].done.at(&refused), Code::memory);
}

TEST(VerbsWire, ForgettingAPeerEndsAllOperationsInFlight) {
    World world;
    world.start();
    world.connect();
    world.verbs->holds = true;
    std::array<WireContext, 40> contexts;
    const std::uint64_t value = 1;
    for (auto& context : contexts) ASSERT_EQ(world.at(0).write(world.place(0, 0), &value, 8, context), Code::ok);
    world.at(0).forget(1);
    world.drive();
    for (auto& context : contexts) EXPECT_EQ(world.listeners[0].done.at(&context), Code::peer_dead);
    EXPECT_EQ(world.at(0).write(world.place(0, 0), &value, 8, contexts[0]), Code::peer_dead);
}

// Its caller got the failure, and may have left the function that owned the variable.
TEST(VerbsWire, CompletionsAfterForgettingThePeerWriteNothing) {
    World world;
    world.settings.atomics = NativeAtomics::always;
    world.start();
    world.connect();
    std::array<std::uint64_t, 2> variables{};
    std::array<WireContext, 3> contexts;
    const std::uint64_t value = 7;
    ASSERT_EQ(world.at(0).read(world.place(0, 0), &variables[0], sizeof value, contexts[0]), Code::ok);
    const npushmem_atomic add = atomic_op(NPUSHMEM_ATOMIC_FETCH_ADD, 1, 0, &variables[1]);
    ASSERT_EQ(world.at(0).atomic(world.place(0, 0), add, contexts[1]), Code::ok);
    ASSERT_EQ(world.at(0).write(world.place(0, 1), &value, sizeof value, contexts[2]), Code::ok);
    (void)world.at(1).progress(world.listeners[1]);  // the device carries them out
    EXPECT_EQ(world.words[1][1], 7U);
    world.at(0).forget(1);
    variables.fill(5);
    world.drive();
    EXPECT_THAT(variables, Each(5U));
    for (auto& context : contexts) EXPECT_EQ(world.listeners[0].done.at(&context), Code::peer_dead);
    EXPECT_THAT(world.listeners[0].whys, SizeIs(contexts.size())) << "each is reported once";
}

TEST(VerbsWire, OwnMemoryThatCannotBeRegisteredFailsTheOperationAndNotThePeer) {
    World world;
    world.start();
    world.connect();
    std::vector<std::byte> large(20000);
    WireContext context;
    EXPECT_EQ(world.retry_until_posted(
                  [&] { return world.at(0).read(world.place(0, 0), large.data(), large.size(), context); }),
              Code::ok);
    world.drive();
    EXPECT_EQ(world.listeners[0].done.at(&context), Code::ok);
    world.verbs->fail("reg_mr", ENOMEM);
    EXPECT_EQ(world.at(0).read(world.place(0, 0), large.data(), large.size(), context), Code::ok);
    world.drive();
    EXPECT_EQ(world.listeners[0].done.at(&context), Code::memory);
    EXPECT_THAT(world.listeners[0].losses, IsEmpty());
}

TEST(VerbsWire, ExhaustedQueuePairsAreReported) {
    World world;
    world.start();
    world.verbs->fail("create_qp", ENOMEM);
    WireContext context;
    const std::uint64_t value = 1;
    EXPECT_EQ(world.at(0).write(world.place(0, 0), &value, 8, context), Code::system);
    EXPECT_THAT(world.at(0).last_error(), AllOf(HasSubstr("ibv_create_qp with 1024 send requests (NPUSHMEM_QP_DEPTH)"),
                                                HasSubstr("1000 queue pairs")));
    EXPECT_TRUE(world.at(0).prepare_to_wait(network::WakeEvents::arrivals)) << "nobody is asked any more";
}

TEST(VerbsWire, QueuePairsExhaustedAtThePeerAreReportedAtBothEnds) {
    World world;
    world.start();
    world.verbs->fail("create_qp", ENOMEM, 1);
    WireContext context;
    const std::uint64_t value = 1;
    EXPECT_EQ(world.write(0, 0, &value, 8, context), Code::unreachable);
    EXPECT_THAT(world.at(0).last_error(), HasSubstr("the peer could not create its queue pair"));
    ASSERT_THAT(world.listeners[0].losses, SizeIs(1));
    ASSERT_FALSE(world.listeners[1].losses.empty());
    EXPECT_THAT(world.listeners[1].losses[0].why, HasSubstr("ibv_create_qp with 1024 send requests"));
    world.drive();
    EXPECT_TRUE(world.at(0).prepare_to_wait(network::WakeEvents::arrivals)) << "nobody is asked any more";
}

TEST(VerbsWire, APostThatTheDeviceRefusesLosesThePeer) {
    World world;
    world.start();
    world.connect();
    world.verbs->fail("post_send", ENOMEM);
    WireContext context;
    const std::uint64_t value = 1;
    EXPECT_EQ(world.at(0).write(world.place(0, 0), &value, 8, context), Code::system);
    EXPECT_THAT(world.at(0).last_error(), HasSubstr("ibv_post_send: Cannot allocate memory"));
}

TEST(VerbsWire, ACompletionQueueThatBreaksLosesEveryPeer) {
    World world;
    world.start();
    world.connect();
    world.verbs->fail("poll_cq", EIO);
    (void)world.at(0).progress(world.listeners[0]);
    ASSERT_THAT(world.listeners[0].losses, SizeIs(1));
    EXPECT_THAT(world.listeners[0].losses[0].why, HasSubstr("ibv_poll_cq"));
}

// The error of the lost peer when the next request to it fails.
std::string told_when_lost(World& world) {
    world.verbs->next_status = IBV_WC_RETRY_EXC_ERR;
    WireContext context;
    const std::uint64_t value = 1;
    EXPECT_EQ(world.at(0).write(world.place(0, 0), &value, 8, context), Code::ok);
    world.drive();
    return world.listeners[0].losses.empty() ? "" : world.listeners[0].losses[0].why;
}

TEST(VerbsWire, EventsOfTheDeviceLoseNoPeer) {
    World world;
    world.start();
    world.connect();
    world.verbs->raise(IBV_EVENT_PORT_ERR);
    for (int i = 0; i < 600; ++i) (void)world.at(0).progress(world.listeners[0]);
    EXPECT_THAT(world.listeners[0].losses, IsEmpty()) << "a link may come back";
    EXPECT_THAT(told_when_lost(world), HasSubstr("port fake0:1 (1: RoCE v2 ::ffff:10.0.0.1) went down"));
}

// The error of the lost peer after this change of the port, which the device reports.
std::string told_after(ibv_event_type event, const std::function<void(World&)>& change) {
    World world;
    world.settings.pkey = 0x8001;
    world.start();
    world.connect();
    change(world);
    world.verbs->raise(event);
    for (int i = 0; i < 600; ++i) (void)world.at(0).progress(world.listeners[0]);
    EXPECT_THAT(world.listeners[0].losses, IsEmpty()) << "what is connected may go on";
    return told_when_lost(world);
}

TEST(VerbsWire, ReportsAnAddressThatThePortHasLost) {
    EXPECT_THAT(told_after(IBV_EVENT_LID_CHANGE, [](World& world) { world.verbs->device(0).ports[0].lid = 9; }),
                HasSubstr("had the LID 0 and has 9 now, and peers know the old one: start the job again"));
    EXPECT_THAT(told_after(IBV_EVENT_GID_CHANGE, [](World& world) { world.verbs->device(0).gids[0].gid.raw[15] = 77; }),
                HasSubstr("port fake0:1 (1: RoCE v2 ::ffff:10.0.0.1) no longer has this address"));
    EXPECT_THAT(told_after(IBV_EVENT_PKEY_CHANGE, [](World& world) { world.verbs->second_pkey = 0x8002; }),
                HasSubstr("no longer has NPUSHMEM_IB_PKEY=0x8001 at its index"));
}

TEST(VerbsWire, DoesNotReportAChangeOfUnusedAddresses) {
    const std::string hint = told_after(IBV_EVENT_GID_CHANGE, [](World& world) {
        auto& gids = world.verbs->device(0).gids;
        gids.push_back(gids[0]);
        gids.back().gid_index = 3;
        gids.back().gid.raw[15] = 78;
    });
    EXPECT_THAT(hint, AllOf(HasSubstr("transport retry counter exceeded"), ::testing::Not(HasSubstr("any more"))));
}

TEST(VerbsWire, AQueuePairThatTheDeviceStopsLosesItsPeer) {
    World world;
    world.start();
    world.connect();
    const std::uint32_t of_pe_0 = world.verbs->reliable_pairs[2];  // after one probe of each
    world.verbs->raise(IBV_EVENT_QP_FATAL, of_pe_0);
    for (int i = 0; i < 600; ++i) (void)world.at(0).progress(world.listeners[0]);
    ASSERT_THAT(world.listeners[0].losses, SizeIs(1));
    EXPECT_EQ(world.listeners[0].losses[0].code, Code::peer_dead);
}

TEST(VerbsWire, AFailedReceiveQueueLosesEveryPeer) {
    World world;
    world.start();
    world.connect();
    world.verbs->raise(IBV_EVENT_SRQ_ERR);
    for (int i = 0; i < 600; ++i) (void)world.at(0).progress(world.listeners[0]);
    ASSERT_THAT(world.listeners[0].losses, SizeIs(1));
    EXPECT_EQ(world.listeners[0].losses[0].code, Code::unreachable);
}

}  // namespace
}  // namespace npushmem::verbs
