// SPDX-License-Identifier: BSD-3-Clause
#include "transports/verbs/verbs_wire.hpp"

#include <gmock/gmock.h>

#include <array>
#include <numeric>

#include "tests/unit/transports/verbs/verbs_world.hpp"

namespace npushmem::verbs {
namespace {

using network::WireContext;
using test::atomic_op;
using test::RecordingListener;
using test::words_per_pe;
using test::World;
using ::testing::Each;
using ::testing::IsEmpty;
using ::testing::SizeIs;

TEST(VerbsWire, APutCompletesWhenItHasArrived) {
    World world;
    world.start();
    WireContext context;
    const std::uint64_t value = 77;
    ASSERT_EQ(world.write(0, 5, &value, sizeof value, context), Code::ok);
    world.drive();
    EXPECT_EQ(world.words[1][5], 77U);
    EXPECT_EQ(world.listeners[0].done.at(&context), Code::ok);
    EXPECT_THAT(world.listeners[0].losses, IsEmpty());
}

TEST(VerbsWire, AnUnusedPeerTakesNoResources) {
    World world;
    world.start();
    const std::size_t before = world.verbs->objects();
    world.drive();
    EXPECT_EQ(world.verbs->objects(), before);
}

TEST(VerbsWire, ALostConnectMessageIsSentAgain) {
    World world;
    world.start();
    world.verbs->drop_datagrams = 3;
    WireContext context;
    const std::uint64_t value = 3;
    EXPECT_EQ(world.at(0).write(world.place(0, 0), &value, 8, context), Code::again);
    world.drive();
    EXPECT_EQ(world.at(0).write(world.place(0, 0), &value, 8, context), Code::again) << "it was lost";
    for (int i = 0; i < 4; ++i) {
        world.now += std::chrono::milliseconds(100);
        world.drive();
    }
    EXPECT_EQ(world.write(0, 0, &value, 8, context), Code::ok);
    world.drive();
    EXPECT_EQ(world.words[1][0], 3U);
}

TEST(VerbsWire, SimultaneousConnectsMakeOnePair) {
    World world;
    world.start();
    std::array<WireContext, 2> contexts;
    const std::uint64_t value = 9;
    const std::size_t before = world.verbs->reliable_pairs.size();
    for (int pe = 0; pe < 2; ++pe)
        EXPECT_EQ(world.at(pe).write(world.place(pe, 1), &value, 8, contexts[World::index(pe)]), Code::again);
    for (int pe = 0; pe < 2; ++pe) EXPECT_EQ(world.write(pe, 1, &value, 8, contexts[World::index(pe)]), Code::ok);
    world.drive();
    EXPECT_EQ(world.words[0][1], 9U);
    EXPECT_EQ(world.words[1][1], 9U);
    EXPECT_EQ(world.verbs->reliable_pairs.size(), before + 2);
}

TEST(VerbsWire, AConnectMessageOfAnotherJobIsIgnored) {
    World world;
    world.start();
    auto stranger = VerbsWire::open(world.verbs, world.settings, {0, 2, 0}, [&] { return world.now; });
    ASSERT_TRUE(stranger.ok());
    PortAddress wrong = *port_address_from(world.at(1).address().value());
    wrong.nonce ^= 1;  // as of an earlier opening
    ASSERT_TRUE(stranger.value()->address().ok());
    ASSERT_TRUE(stranger.value()->add_peer(1, bytes_from(wrong)).ok());
    const std::size_t before = world.verbs->reliable_pairs.size();
    EXPECT_EQ(stranger.value()->send({1}, Bytes(8), {}), Code::again);
    RecordingListener listener;
    for (int i = 0; i < 5; ++i) (void)stranger.value()->progress(listener);
    world.drive();
    EXPECT_EQ(world.verbs->reliable_pairs.size(), before + 1) << "PE 1 made a queue pair for another job";
}

TEST(VerbsWire, MemoryIsRegisteredInChunksAtFirstUse) {
    World world;
    world.start();
    world.connect();
    const std::size_t one = world.verbs->registered_bytes();
    world.connect();
    EXPECT_EQ(world.verbs->registered_bytes(), one);
    WireContext context;
    const std::uint64_t value = 5;
    ASSERT_EQ(world.write(0, 512, &value, 8, context), Code::ok);  // in the second chunk of 4096 bytes
    world.drive();
    EXPECT_EQ(world.verbs->registered_bytes(), one + 4096);
    EXPECT_EQ(world.words[1][512], 5U);
}

TEST(VerbsWire, LongTransfersCrossChunksInBothDirections) {
    World world;
    world.start();
    std::iota(world.words[0].begin(), world.words[0].end(), 100U);
    WireContext there;
    ASSERT_EQ(world.write(0, 0, world.words[0].data(), sizeof world.words[0], there), Code::ok);
    world.drive();
    EXPECT_EQ(world.listeners[0].done.at(&there), Code::ok);
    EXPECT_EQ(world.words[0], world.words[1]);
    std::vector<std::uint64_t> back(words_per_pe);  // not registered: for this transfer only
    const std::size_t before = world.verbs->registered_bytes();
    WireContext here;
    EXPECT_EQ(world.retry_until_posted(
                  [&] { return world.at(0).read(world.place(0, 0), back.data(), sizeof world.words[0], here); }),
              Code::ok);
    world.drive();
    EXPECT_TRUE(std::equal(back.begin(), back.end(), world.words[1].begin()));
    EXPECT_EQ(world.verbs->registered_bytes(), before);
}

TEST(VerbsWire, ATransferThatExceedsTheQueueIsPostedInParts) {
    World world;
    world.settings.queue_depth = 16;
    world.settings.chunk_bytes = 64;
    world.start();
    std::iota(world.words[0].begin(), world.words[0].end(), 7U);
    WireContext context;
    ASSERT_EQ(world.write(0, 0, world.words[0].data(), sizeof world.words[0], context), Code::ok);
    EXPECT_EQ(world.at(0).send({1}, Bytes(8), {}), Code::again) << "a message may not overtake it";
    world.drive(200);
    EXPECT_EQ(world.listeners[0].done.at(&context), Code::ok);
    EXPECT_EQ(world.words[0], world.words[1]);
}

TEST(VerbsWire, ABurstAsksForFewCompletionsAndReportsAll) {
    World world;
    world.start();
    world.connect();
    world.verbs->send_flags.clear();
    constexpr std::size_t count = 200;
    std::array<WireContext, count> contexts;
    const std::uint64_t value = 1;
    for (auto& context : contexts) ASSERT_EQ(world.at(0).write(world.place(0, 0), &value, 8, context), Code::ok);
    world.drive();
    for (auto& context : contexts) EXPECT_EQ(world.listeners[0].done.at(&context), Code::ok);
    const auto signaled = std::count_if(world.verbs->send_flags.begin(), world.verbs->send_flags.end(),
                                        [](unsigned flags) { return (flags & IBV_SEND_SIGNALED) != 0; });
    EXPECT_LE(signaled, 40);
    EXPECT_GE(signaled, 2);
}

TEST(VerbsWire, AFewRequestsNeedNoExtraRequestForTheirCompletion) {
    World world;
    world.start();
    world.connect();
    const int before = world.verbs->calls["post_send"];
    std::array<WireContext, 4> contexts;
    const std::uint64_t value = 1;
    for (auto& context : contexts) ASSERT_EQ(world.at(0).write(world.place(0, 0), &value, 8, context), Code::ok);
    world.drive();
    for (auto& context : contexts) EXPECT_EQ(world.listeners[0].done.at(&context), Code::ok);
    EXPECT_EQ(world.verbs->calls["post_send"], before + 4);
}

TEST(VerbsWire, AFullQueueIsBackPressureAndNoOverflow) {
    World world;
    world.settings.queue_depth = 16;
    world.start();
    world.connect();
    world.verbs->holds = true;
    std::array<WireContext, 64> contexts;
    const std::uint64_t value = 1;
    std::size_t posted = 0;
    while (posted < contexts.size() && world.at(0).write(world.place(0, 0), &value, 8, contexts[posted]) == Code::ok)
        ++posted;
    EXPECT_GT(posted, 8U);
    EXPECT_LT(posted, 16U);
    world.verbs->holds = false;
    world.drive();
    EXPECT_EQ(world.write(0, 0, &value, 8, contexts[posted]), Code::ok);
    EXPECT_THAT(world.listeners[0].losses, IsEmpty());
}

TEST(VerbsWire, ASignalFollowsItsDataInOneChain) {
    World world;
    world.start();
    world.connect();
    EXPECT_EQ(world.at(0).traits().signals, 1U << NPUSHMEM_SIGNAL_SET);
    const int before = world.verbs->calls["post_send"];
    world.verbs->opcodes.clear();
    std::array<std::uint64_t, 100> data{};
    data.fill(4);
    WireContext context;
    ASSERT_EQ(world.at(0).write_signal(world.place(0, 10), data.data(), sizeof data, world.place(0, 200), 11, context),
              Code::ok);
    EXPECT_EQ(world.verbs->calls["post_send"], before + 2);  // of one chain
    world.drive();
    EXPECT_EQ(world.words[1][109], 4U);
    EXPECT_EQ(world.words[1][200], 11U);
    EXPECT_EQ(world.listeners[0].done.at(&context), Code::ok);
}

TEST(VerbsWire, MessagesArriveInOrderWithTheirTwoPieces) {
    World world;
    world.start();
    for (unsigned i = 0; i < 300; ++i) {
        const Bytes head(i % 7 + 1, static_cast<std::byte>(i));
        const Bytes rest(i * 13 % 4000, static_cast<std::byte>(i));
        ASSERT_EQ(world.retry_until_posted([&] { return world.at(0).send({1}, head, rest); }), Code::ok);
    }
    world.drive(200);
    ASSERT_THAT(world.listeners[1].messages, SizeIs(300));
    for (unsigned i = 0; i < 300; ++i) {
        EXPECT_THAT(world.listeners[1].messages[i], SizeIs(i % 7 + 1 + i * 13 % 4000));
        EXPECT_THAT(world.listeners[1].messages[i], Each(static_cast<std::byte>(i)));
    }
    EXPECT_EQ(world.at(0).send({1}, Bytes(world.at(0).traits().message_bytes + 1), {}), Code::argument);
}

TEST(VerbsWire, UsesNativeAtomicsOnlyOnCoherentNicsUnlessConfigured) {
    const auto offered = [](ibv_atomic_cap able, NativeAtomics requested) {
        World world;
        world.settings.atomics = requested;
        world.verbs->add_device("fake0").attributes.atomic_cap = able;
        world.devices = 1;
        world.start();
        return world.at(0).traits().atomic_64 != 0;
    };
    EXPECT_FALSE(offered(IBV_ATOMIC_HCA, NativeAtomics::if_coherent));
    EXPECT_TRUE(offered(IBV_ATOMIC_GLOB, NativeAtomics::if_coherent));
    EXPECT_FALSE(offered(IBV_ATOMIC_GLOB, NativeAtomics::never));
    EXPECT_TRUE(offered(IBV_ATOMIC_HCA, NativeAtomics::always));
    EXPECT_FALSE(offered(IBV_ATOMIC_NONE, NativeAtomics::always));
}

TEST(VerbsWire, ADeviceWithoutAtomicsServesOtherOperations) {
    World world;
    world.verbs->add_device("fake0").attributes.atomic_cap = IBV_ATOMIC_NONE;
    world.devices = 1;
    world.start();
    world.connect();
}

TEST(VerbsWire, NativeAtomicsReturnTheOldValue) {
    World world;
    world.settings.atomics = NativeAtomics::always;
    world.start();
    world.connect();
    world.words[1][3] = 40;
    std::array<std::uint64_t, 4> old{};
    std::array<WireContext, 4> contexts;
    const std::array<npushmem_atomic, 4> ops{
        atomic_op(NPUSHMEM_ATOMIC_FETCH_ADD, 2, 0, &old[0]), atomic_op(NPUSHMEM_ATOMIC_COMPARE_SWAP, 50, 42, &old[1]),
        atomic_op(NPUSHMEM_ATOMIC_COMPARE_SWAP, 60, 42, &old[2]), atomic_op(NPUSHMEM_ATOMIC_FETCH, 0, 0, &old[3])};
    for (std::size_t i = 0; i < ops.size(); ++i)
        ASSERT_EQ(world.retry_until_posted([&] { return world.at(0).atomic(world.place(0, 3), ops[i], contexts[i]); }),
                  Code::ok);
    world.drive();
    EXPECT_THAT(old, ::testing::ElementsAre(40, 42, 50, 50));
    EXPECT_EQ(world.words[1][3], 50U);
}

TEST(VerbsWire, AWriteBehindAnAtomicHasTheFenceBit) {
    World world;
    world.settings.atomics = NativeAtomics::always;
    world.start();
    world.connect();
    world.verbs->holds = true;
    world.verbs->send_flags.clear();
    std::array<WireContext, 2> contexts;
    const std::uint64_t value = 1;
    ASSERT_EQ(world.at(0).atomic(world.place(0, 0), atomic_op(NPUSHMEM_ATOMIC_ADD, 1, 0, nullptr), contexts[0]),
              Code::ok);
    ASSERT_EQ(world.at(0).write(world.place(0, 1), &value, 8, contexts[1]), Code::ok);
    world.verbs->holds = false;
    world.drive();
    ASSERT_GE(world.verbs->send_flags.size(), 2U);
    EXPECT_EQ(world.verbs->send_flags[0] & IBV_SEND_FENCE, 0U);
    EXPECT_NE(world.verbs->send_flags[1] & IBV_SEND_FENCE, 0U);
}

TEST(VerbsWire, PrepareToWaitRejectsWorkThatNoDescriptorReports) {
    World world;
    world.start();
    EXPECT_TRUE(world.at(0).prepare_to_wait(network::WakeEvents::arrivals));
    EXPECT_GE(world.at(0).descriptor(), 0);
    EXPECT_EQ(world.at(0).send({1}, Bytes(8), {}), Code::again);
    EXPECT_FALSE(world.at(0).prepare_to_wait(network::WakeEvents::arrivals)) << "a connect message has to be repeated";
    EXPECT_FALSE(world.verbs->armed_for_all);
    EXPECT_FALSE(world.at(0).prepare_to_wait(network::WakeEvents::arrivals_and_completions));
    EXPECT_TRUE(world.verbs->armed_for_all) << "whoever waits already is woken all the same";
    world.drive();
    EXPECT_EQ(world.at(0).send({1}, Bytes(8), {}), Code::ok);
    EXPECT_FALSE(world.at(1).prepare_to_wait(network::WakeEvents::arrivals)) << "something has arrived";
    world.drive();
    EXPECT_THAT(world.listeners[1].messages, SizeIs(1));
    EXPECT_TRUE(world.at(1).prepare_to_wait(network::WakeEvents::arrivals));
}

// Earlier completions raise no event of the device.
TEST(VerbsWire, AWaitingThreadIsWokenForAPartlyPostedTransfer) {
    World world;
    world.settings.queue_depth = 16;
    world.settings.chunk_bytes = 64;
    world.start();
    WireContext long_one;
    const auto write_all = [&] { return world.write(0, 0, world.words[0].data(), sizeof world.words[0], long_one); };
    ASSERT_EQ(write_all(), Code::ok);
    world.drive(200);
    ASSERT_TRUE(world.at(0).prepare_to_wait(network::WakeEvents::arrivals));
    EXPECT_FALSE(test::wakes(world.at(0)));
    const std::uint64_t value = 8;
    std::array<WireContext, 12> short_ones;
    for (auto& each : short_ones) ASSERT_EQ(world.at(0).write(world.place(0, 0), &value, sizeof value, each), Code::ok);
    (void)world.at(1).progress(world.listeners[1]);  // the first PE's have completed, and it has not looked
    EXPECT_FALSE(test::wakes(world.at(0))) << "nothing is left to be posted";
    ASSERT_EQ(write_all(), Code::ok);
    EXPECT_TRUE(test::wakes(world.at(0)));
    for (int i = 0; i < 400 && !world.at(0).prepare_to_wait(network::WakeEvents::arrivals); ++i) {
        EXPECT_TRUE(test::wakes(world.at(0)) || world.listeners[0].done.contains(&long_one))
            << "until all of it is posted";
        (void)world.at(0).progress(world.listeners[0]);
    }
    EXPECT_EQ(world.listeners[0].done.at(&long_one), Code::ok);
    EXPECT_FALSE(test::wakes(world.at(0)));
}

TEST(VerbsWire, AThreadThatWaitsForArrivalsIsWokenByMessagesOnly) {
    World world;
    world.start();
    world.connect();
    EXPECT_TRUE(world.at(0).prepare_to_wait(network::WakeEvents::arrivals_and_completions));
    EXPECT_TRUE(world.verbs->armed_for_all);
    EXPECT_TRUE(world.at(0).prepare_to_wait(network::WakeEvents::arrivals));
    EXPECT_FALSE(world.verbs->armed_for_all);
    world.verbs->send_flags.clear();
    WireContext context;
    const std::uint64_t value = 1;
    ASSERT_EQ(world.at(0).write(world.place(0, 0), &value, 8, context), Code::ok);
    ASSERT_EQ(world.at(0).send({1}, Bytes(8), {}), Code::ok);
    world.drive();
    ASSERT_THAT(world.verbs->send_flags, SizeIs(2));
    EXPECT_EQ(world.verbs->send_flags[0] & IBV_SEND_SOLICITED, 0U);
    EXPECT_NE(world.verbs->send_flags[1] & IBV_SEND_SOLICITED, 0U);
}

}  // namespace
}  // namespace npushmem::verbs
