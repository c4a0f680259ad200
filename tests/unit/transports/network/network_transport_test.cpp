// SPDX-License-Identifier: BSD-3-Clause
#include "transports/network/network_transport.hpp"

#include <gmock/gmock.h>

#include <algorithm>
#include <array>
#include <cstring>

#include "core/base/liveness.hpp"
#include "tests/unit/transports/network/network_world.hpp"
#include "transports/network/address_codec.hpp"

namespace npushmem::network {
namespace {

using fakes::data_words;
using fakes::flag_word;
using fakes::World;
using ::testing::AllOf;
using ::testing::HasSubstr;

struct Mode {
    const char* name;
    Delivery delivery;
    std::uint32_t native_atomics;
    std::size_t room;
    std::size_t write_as_message = 0;
    int rails = 1;
};
void PrintTo(const Mode& mode, std::ostream* out) { *out << mode.name; }

class EveryWire : public ::testing::TestWithParam<Mode> {
protected:
    std::unique_ptr<World> make_world(unsigned seed) {
        auto world = std::make_unique<World>(GetParam().delivery, seed);
        for (int rail = 1; rail < GetParam().rails; ++rail) world->add_rail(128);
        for (std::size_t i = 0; i <= world->rails.size(); ++i) {
            auto& network = i == 0 ? world->network : *world->rails[i - 1];
            network.native_atomics = GetParam().native_atomics;
            network.room = GetParam().room;
            network.write_as_message = GetParam().write_as_message;
        }
        world->start();
        return world;
    }
    // `raise` sends the number of the round to the flag. A reader of the flag must see the data of that round.
    template <class Send>
    void never_before_the_data(Send send) {
        for (unsigned seed = 1; seed <= 20; ++seed) {
            const auto world = make_world(seed);
            std::array<std::uint64_t, data_words> data{};
            for (std::uint64_t round = 1; round <= 5; ++round) {
                data.fill(round);
                const auto watch = [&] {
                    if (world->word(1, flag_word) != round) return;
                    for (std::size_t i = 0; i < data_words; ++i)
                        ASSERT_EQ(world->word(1, i), round) << "word " << i << ", seed " << seed;
                };
                send(*world, data.data(), round, watch);
                EXPECT_EQ(world->finish([&] { return world->at(0).quiet(world->queue[0]); }, watch), Code::ok);
                ASSERT_EQ(world->word(1, flag_word), round) << "quiet, seed " << seed;
            }
        }
    }
    using Watch = std::function<void()>;
    static void put_words(World& world, std::uint64_t* data, const Watch& watch) {
        constexpr std::size_t piece = 16;
        for (std::size_t i = 0; i < data_words; i += piece)
            EXPECT_EQ(
                world.finish([&] { return world.at(0).put(world.queue[0], world.rma(1, i, data + i, piece), nullptr); },
                             watch),
                Code::ok);
        EXPECT_EQ(world.at(0).fence(world.queue[0]), Code::ok);
    }
};

TEST_P(EveryWire, AFencedPutNeverOvertakes) {
    never_before_the_data([](World& world, std::uint64_t* data, std::uint64_t round, const Watch& watch) {
        put_words(world, data, watch);
        EXPECT_EQ(
            world.finish([&] { return world.at(0).put(world.queue[0], world.rma(1, flag_word, &round, 1), nullptr); },
                         watch),
            Code::ok);
    });
}

// The put after the fence is posted at once only if the handler's answer is not needed for the order.
TEST(FenceAfterARequest, IsFreeIfMessagesAreInOrder) {
    for (const bool in_order : {false, true}) {
        World world{Delivery::in_order};
        world.start();
        if (in_order) world.wires[0]->handle_messages_in_order();
        std::uint64_t value = 5;
        ASSERT_EQ(world.at(0).atomic(world.queue[0], world.atomic(1, NPUSHMEM_ATOMIC_ADD, 0, 1), nullptr), Code::ok);
        ASSERT_EQ(world.at(0).fence(world.queue[0]), Code::ok);
        EXPECT_EQ(world.at(0).put(world.queue[0], world.rma(1, 1, &value, 1), nullptr),
                  in_order ? Code::ok : Code::again);
    }
}

// The even words of the data in one call, the odd ones in another, the flag as a single block.
TEST_P(EveryWire, AFencedStridedPutNeverOvertakes) {
    never_before_the_data([](World& world, std::uint64_t* data, std::uint64_t round, const Watch& watch) {
        const auto put = [&](std::size_t first, std::uint64_t* source, std::uint64_t count) {
            const npushmem_put_strided op{world.rma(1, first, source, 1), count, 16, 16};
            std::uint64_t token = 1;
            EXPECT_EQ(world.finish([&] { return world.at(0).put_strided(world.queue[0], op, &token); }, watch),
                      Code::ok);
            EXPECT_EQ(world.finish([&] { return world.at(0).test(world.queue[0], token); }, watch), Code::ok);
        };
        put(0, data, data_words / 2);
        put(1, data + 1, data_words / 2);
        std::fill_n(data, data_words, 0);  // they are complete
        EXPECT_EQ(world.at(0).fence(world.queue[0]), Code::ok);
        put(flag_word, &round, 1);
        std::fill_n(data, data_words, round + 1);
    });
}

TEST_P(EveryWire, AStridedPutIsCheckedAsAWhole) {
    const auto world = make_world(1);
    std::uint64_t value = 5;
    const auto put = [&](std::size_t index, std::uint64_t count, std::uint64_t stride) {
        const npushmem_put_strided op{world->rma(1, index, &value, 1), count, stride, 0};
        return world->finish([&] { return world->at(0).put_strided(world->queue[0], op, nullptr); });
    };
    EXPECT_EQ(put(0, 2, 127 * 8), Code::ok);
    EXPECT_EQ(put(1, 2, 127 * 8), Code::range);
    EXPECT_EQ(put(2, 2, ~std::uint64_t{7}), Code::range);
    EXPECT_EQ(put(3, NPUSHMEM_PUT_STRIDED_MAX / 8 + 1, 0), Code::range);
    EXPECT_EQ(put(128, 0, 8), Code::ok) << "nothing, at the end";
    npushmem_put_strided nowhere{world->rma(1, 4, nullptr, 1), 1, 0, 0};
    EXPECT_EQ(world->at(0).put_strided(world->queue[0], nowhere, nullptr), Code::argument);
    EXPECT_EQ(world->quiet(), Code::ok);
    EXPECT_EQ(world->word(1, 0), 5U);
    EXPECT_EQ(world->word(1, 127), 5U);
    for (std::size_t i = 1; i < 127; ++i) EXPECT_EQ(world->word(1, i), 0U) << "word " << i;
    world->wires[0]->lose = 1;
    (void)world->at(0).progress();
    EXPECT_EQ(put(0, 2, 8), Code::peer_dead);
}

TEST_P(EveryWire, AFencedAtomicNeverOvertakes) {
    never_before_the_data([](World& world, std::uint64_t* data, std::uint64_t round, const Watch& watch) {
        put_words(world, data, watch);
        const auto op = world.atomic(1, NPUSHMEM_ATOMIC_SET, flag_word, round);
        EXPECT_EQ(world.finish([&] { return world.at(0).atomic(world.queue[0], op, nullptr); }, watch), Code::ok);
    });
}

TEST_P(EveryWire, APutAfterFencedAtomicsNeverOvertakes) {
    never_before_the_data([](World& world, std::uint64_t* data, std::uint64_t round, const Watch& watch) {
        for (std::size_t i = 0; i < data_words; ++i) {
            const auto op = world.atomic(1, NPUSHMEM_ATOMIC_SET, i, data[i]);
            EXPECT_EQ(world.finish([&] { return world.at(0).atomic(world.queue[0], op, nullptr); }, watch), Code::ok);
        }
        EXPECT_EQ(world.at(0).fence(world.queue[0]), Code::ok);
        EXPECT_EQ(
            world.finish([&] { return world.at(0).put(world.queue[0], world.rma(1, flag_word, &round, 1), nullptr); },
                         watch),
            Code::ok);
    });
}

TEST_P(EveryWire, ASignalNeverPrecedesItsData) {
    for (const std::size_t first : {std::size_t{0}, data_words - 4}) {  // long and short
        never_before_the_data([first](World& world, std::uint64_t* data, std::uint64_t round, const Watch& watch) {
            if (first > 0) put_words(world, data, watch);
            npushmem_put_signal op{};
            op.data = world.rma(1, first, data + first, data_words - first);
            op.signal_remote = op.data.remote;
            op.signal_offset = flag_word * 8;
            op.signal = first > 0 ? round : 1;
            op.operation = first > 0 ? NPUSHMEM_SIGNAL_SET : NPUSHMEM_SIGNAL_ADD;
            std::uint64_t token = 0;
            EXPECT_EQ(world.finish([&] { return world.at(0).put_signal(world.queue[0], op, &token); }, watch),
                      Code::ok);
            EXPECT_EQ(world.finish([&] { return world.at(0).test(world.queue[0], token); }, watch), Code::ok);
        });
    }
}

TEST_P(EveryWire, AFencedSignalPrecedesLaterPuts) {
    for (unsigned seed = 1; seed <= 20; ++seed) {
        const auto world = make_world(seed);
        std::array<std::uint64_t, data_words> data{};
        data.fill(7);
        npushmem_put_signal op{};
        op.data = world->rma(1, 0, data.data(), data_words);  // longer than a message
        op.signal_remote = op.data.remote;
        op.signal_offset = flag_word * 8;
        op.signal = 1;
        op.operation = NPUSHMEM_SIGNAL_ADD;
        std::uint64_t later = 9;
        const auto watch = [&] {
            const bool second_has_arrived = world->word(1, flag_word + 1) == 9;
            ASSERT_TRUE(!second_has_arrived || world->word(1, flag_word) == 1) << "seed " << seed;
        };
        const auto put_second = [&] {
            return world->at(0).put(world->queue[0], world->rma(1, flag_word + 1, &later, 1), nullptr);
        };
        ASSERT_EQ(world->finish([&] { return world->at(0).put_signal(world->queue[0], op, nullptr); }), Code::ok);
        ASSERT_EQ(world->at(0).fence(world->queue[0]), Code::ok);
        ASSERT_EQ(world->finish(put_second, watch), Code::ok);
        EXPECT_EQ(world->finish([&] { return world->at(0).quiet(world->queue[0]); }, watch), Code::ok);
        EXPECT_EQ(world->word(1, flag_word + 1), 9U);
    }
}

TEST(NetworkTransport, FailedDataHasNoSignalIfTheWireReportsDelivery) {
    for (const Delivery delivery : {Delivery::on_completion, Delivery::in_order_on_completion}) {
        World world(delivery);
        world.start();
        ASSERT_EQ(world.quiet(), Code::ok);
        std::array<std::uint64_t, data_words> data{};
        npushmem_put_signal op{};
        op.data = world.rma(1, 0, data.data(), data_words);
        op.signal_remote = op.data.remote;
        op.signal_offset = flag_word * 8;
        op.signal = 1;
        op.operation = NPUSHMEM_SIGNAL_ADD;
        world.wires[0]->fail_with = Code::range;
        ASSERT_EQ(world.finish([&] { return world.at(0).put_signal(world.queue[0], op, nullptr); }), Code::ok);
        EXPECT_EQ(world.quiet(), Code::range);
        world.wires[0]->fail_with = Code::ok;
        EXPECT_EQ(world.quiet(), Code::ok);
        EXPECT_EQ(world.word(1, flag_word), 0U);
    }
}

TEST_P(EveryWire, FetchesReturnTheOldValue) {
    const auto world = make_world(1);
    world->words[1][3] = 40;
    std::uint64_t old = 0;
    auto op = world->atomic(1, NPUSHMEM_ATOMIC_FETCH_ADD, 3, 2);
    op.result = &old;
    std::uint64_t token = 0;
    ASSERT_EQ(world->finish([&] { return world->at(0).atomic(world->queue[0], op, &token); }), Code::ok);
    EXPECT_NE(token, 0U);
    EXPECT_EQ(world->finish([&] { return world->at(0).test(world->queue[0], token); }), Code::ok);
    EXPECT_EQ(old, 40U);
    EXPECT_EQ(world->word(1, 3), 42U);
    EXPECT_EQ(world->wires[0]->native_atomics_used, GetParam().native_atomics != 0 ? 1 : 0);
}

TEST_P(EveryWire, ALostPeerFailsItsOperationsOnceAndOthersContinue) {
    const auto world = make_world(1);
    std::uint64_t value = 5;
    ASSERT_EQ(world->put(1, value), Code::ok);
    ASSERT_EQ(world->put(2, value), Code::ok);
    world->wires[0]->lose = 1;
    EXPECT_EQ(world->quiet(), Code::peer_dead);
    EXPECT_EQ(world->word(2, 0), 5U);
    npushmem_event event{};
    ASSERT_EQ(world->at(0).poll_event(event), Code::ok);
    EXPECT_EQ(event.pe, 1);
    EXPECT_THAT(text_of(event.message), AllOf(HasSubstr("PE 1 on host elsewhere"), HasSubstr("connection reset")));
    EXPECT_EQ(world->quiet(), Code::ok) << "reported twice";
    EXPECT_EQ(world->put(1, value), Code::peer_dead);
    value = 6;
    ASSERT_EQ(world->put(2, value), Code::ok);
    EXPECT_EQ(world->quiet(), Code::ok);
    EXPECT_EQ(world->word(2, 0), 6U);
}

TEST_P(EveryWire, AForgottenPeerFailsItsOperationsOnceAndOthersContinue) {
    const auto world = make_world(1);
    std::uint64_t value = 5;
    ASSERT_EQ(world->put(1, value), Code::ok);
    ASSERT_EQ(world->put(2, value), Code::ok);
    EXPECT_EQ(world->at(0).forget(1), Code::ok);
    EXPECT_EQ(world->quiet(), Code::peer_dead);
    EXPECT_EQ(world->word(2, 0), 5U);
    npushmem_event event{};
    ASSERT_EQ(world->at(0).poll_event(event), Code::ok);
    EXPECT_EQ(event.pe, 1);
    EXPECT_THAT(text_of(event.message),
                AllOf(HasSubstr("PE 1 has died or finalized"), HasSubstr("under way to PE 1 on host elsewhere")));
    EXPECT_EQ(world->at(0).forget(1), Code::ok);
    EXPECT_EQ(world->quiet(), Code::ok) << "reported twice";
    EXPECT_EQ(world->put(1, value), Code::peer_dead);
    EXPECT_EQ(world->at(0).forget(2), Code::ok);
    EXPECT_EQ(world->at(0).poll_event(event), Code::again) << "nothing was under way";
    EXPECT_EQ(world->put(2, value), Code::peer_dead);
    EXPECT_EQ(world->at(0).forget(0), Code::argument) << "not a peer";
    EXPECT_EQ(world->at(0).forget(World::npes), Code::argument);
}

// Otherwise the wire would write the data to memory that its owner has freed since.
TEST_P(EveryWire, AForgottenPeersDataThatHasArrivedCompletesItsRead) {
    const auto world = make_world(1);
    world->words[1][0] = 77;
    std::uint64_t word = 0;
    std::uint64_t token = 0;
    ASSERT_EQ(world->finish([&] { return world->at(0).get(world->queue[0], world->rma(1, 0, &word, 1), &token); }),
              Code::ok);
    world->wires[0]->steps_in_progress = true;
    EXPECT_EQ(world->at(0).forget(1), Code::ok);
    EXPECT_EQ(word, 77U);
    EXPECT_EQ(world->at(0).test(world->queue[0], token), Code::ok);
    word = 1;  // the owner uses the memory for something else
    for (int i = 0; i < 100; ++i) world->step();
    EXPECT_EQ(word, 1U);
    std::uint64_t value = 5;
    EXPECT_EQ(world->put(1, value), Code::peer_dead);
}

TEST_P(EveryWire, ANormalEndIsNoEventAndLaterOperationsFail) {
    const auto world = make_world(1);
    std::uint64_t value = 5;
    ASSERT_EQ(world->put(1, value), Code::ok);
    ASSERT_EQ(world->quiet(), Code::ok);
    world->deliver();
    world->pes[1].reset();
    world->deliver();
    world->wires[0]->lose = 1;  // the network reports the closed connection
    world->deliver();
    npushmem_event event{};
    EXPECT_EQ(world->at(0).poll_event(event), Code::again) << event.message;
    EXPECT_EQ(world->quiet(), Code::ok) << "nothing is outstanding";
    EXPECT_EQ(world->put(1, value), Code::peer_dead);
    ASSERT_EQ(world->put(2, value), Code::ok);
    EXPECT_EQ(world->quiet(), Code::ok);
}

// Only such codes end waits for a peer.
TEST_P(EveryWire, APeerIsLostWithAnyErrorOfItsFirstLane) {
    const auto world = make_world(1);
    std::uint64_t value = 5;
    ASSERT_EQ(world->put(1, value), Code::ok);
    world->wires[0]->lose_lane = LaneId{1, 0};  // by an error of range
    EXPECT_EQ(world->quiet(), Code::unreachable);
    npushmem_event event{};
    ASSERT_EQ(world->at(0).poll_event(event), Code::ok);
    EXPECT_EQ(event.pe, 1);
    EXPECT_TRUE(ends_a_peer(static_cast<Code>(event.code)));
    EXPECT_THAT(text_of(event.message), HasSubstr("the lane stopped"));
    EXPECT_EQ(world->put(1, value), Code::unreachable);
}

TEST_P(EveryWire, TheTokenReportsAFailedOperation) {
    const auto world = make_world(1);
    ASSERT_EQ(world->quiet(), Code::ok);
    world->wires[0]->fail_with = Code::range;
    std::uint64_t word = 0;
    std::uint64_t token = 0;
    ASSERT_EQ(world->finish([&] { return world->at(0).get(world->queue[0], world->rma(1, 0, &word, 1), &token); }),
              Code::ok);
    npushmem_event event{};
    EXPECT_EQ(world->at(0).poll_event(event), Code::again) << "reported to another PE";
    EXPECT_EQ(world->finish([&] { return world->at(0).test(world->queue[0], token); }), Code::range);
    ASSERT_EQ(world->at(0).poll_event(event), Code::ok);
    EXPECT_THAT(text_of(event.message),
                AllOf(HasSubstr("an operation to PE 1"), HasSubstr("the test made the fake wire fail")));
    world->wires[0]->fail_with = Code::ok;
    EXPECT_EQ(world->quiet(), Code::ok);
}

INSTANTIATE_TEST_SUITE_P(NetworkTransport, EveryWire,
                         ::testing::Values(Mode{"in_order", Delivery::in_order, 0, 1000},
                                           Mode{"on_completion", Delivery::on_completion, 0, 1000},
                                           Mode{"on_flush", Delivery::on_flush, 0, 1000},
                                           Mode{"in_order_narrow", Delivery::in_order, 0, 1},
                                           Mode{"on_completion_narrow", Delivery::on_completion, 0, 1},
                                           Mode{"on_flush_narrow", Delivery::on_flush, 0, 2},
                                           Mode{"on_flush_native", Delivery::on_flush, 0xfff, 1000},
                                           Mode{"on_flush_messages", Delivery::on_flush, 0, 1000, 64},
                                           Mode{"on_flush_both", Delivery::on_flush, 0, 2, 8},
                                           Mode{"in_order_both", Delivery::in_order, 0, 1000, 8},
                                           Mode{"in_order_told", Delivery::in_order_on_completion, 0, 1000},
                                           Mode{"in_order_told_narrow", Delivery::in_order_on_completion, 0, 1},
                                           Mode{"in_order_told_native", Delivery::in_order_on_completion, 0xfff, 1000},
                                           Mode{"rails", Delivery::in_order_on_completion, 0, 1000, 0, 2},
                                           Mode{"rails_narrow", Delivery::in_order_on_completion, 0, 1, 0, 3},
                                           Mode{"rails_native", Delivery::in_order_on_completion, 0xfff, 1000, 0, 2}),
                         [](const auto& tested) { return std::string(tested.param.name); });

TEST(NetworkTransport, SendsAShortWriteAsAMessageIfTheWireRequestsIt) {
    World world(Delivery::on_flush);
    world.network.write_as_message = 64;
    world.start();
    std::array<std::uint64_t, 9> words{};
    words.fill(3);
    std::uint64_t token = 1;
    ASSERT_EQ(world.at(0).put(world.queue[0], world.rma(1, 0, words.data(), 8), &token), Code::ok);
    EXPECT_EQ(token, 0U) << "the source is free at once";
    words.fill(4);
    EXPECT_EQ(world.quiet(), Code::ok);
    EXPECT_EQ(world.word(1, 7), 3U);
    EXPECT_EQ(world.wires[0]->used.size(), 0U) << "nothing was written";
    ASSERT_EQ(world.at(0).put(world.queue[0], world.rma(1, 0, words.data(), 9), nullptr), Code::ok);
    EXPECT_EQ(world.quiet(), Code::ok);
    EXPECT_EQ(world.word(1, 8), 4U);
    EXPECT_EQ(world.wires[0]->used.size(), 1U);
}

TEST(NetworkTransport, TheGoodbyeWaitsForRoom) {
    NetworkSettings settings = World::quiet_settings();
    settings.max_goodbye = std::chrono::minutes(5);
    World world(Delivery::in_order, 1, settings);
    world.start();
    world.deliver();
    world.network.room = 1;
    const auto ping = make_message<MessageHeader>(MessageKind::ping, 1);
    ASSERT_EQ(world.wires[1]->send({0}, world.signed_message(0, bytes_of(ping)), {}), Code::ok);
    std::atomic<bool> ended{false};
    std::thread network([&] {
        while (!ended.load()) (void)world.network.step();
    });
    world.pes[1].reset();
    ended.store(true);
    network.join();
    world.deliver();
    world.wires[0]->lose = 1;
    world.deliver();
    npushmem_event event{};
    EXPECT_EQ(world.at(0).poll_event(event), Code::again) << event.message;
}

TEST(NetworkTransport, ADestroyedQueueLeavesLocalMemoryAlone) {
    World world(Delivery::in_order);
    world.start();
    std::uint64_t old = 5;
    auto op = world.atomic(1, NPUSHMEM_ATOMIC_FETCH, 0, 0);
    op.result = &old;
    ASSERT_EQ(world.at(0).atomic(world.queue[0], op, nullptr), Code::ok);
    ASSERT_EQ(world.at(0).destroy_queue(world.queue[0]), Code::ok);
    world.queue[0] = world.at(0).create_queue().value();
    EXPECT_EQ(world.quiet(), Code::ok);
    for (int i = 0; i < 100; ++i) world.step();
    EXPECT_EQ(old, 5U);
}

TEST(NetworkTransport, ReportsWhyAPeerIsUnreachable) {
    World world(Delivery::in_order);
    world.start();
    EXPECT_THAT(world.at(0).reach(world.peer(0, world.at(0).address().value())).why, HasSubstr("itself"));
    EXPECT_THAT(world.at(0).reach(world.peer(1, {})).why, HasSubstr("not opened"));
    const Bytes other = encode(EndpointAddress{"another network", Bytes(4)});
    EXPECT_THAT(world.at(0).reach(world.peer(1, other)).why, AllOf(HasSubstr("another network"), HasSubstr("fake")));
    EXPECT_FALSE(world.at(0).reach(world.peer(1, Bytes(20))).reachable());
    EXPECT_FALSE(world.at(0).reach(world.peer(7, world.at(1).address().value())).reachable());
}

// The failure cannot be reported, because not even the requesting queue is known.
TEST(NetworkTransport, ATruncatedRequestIsAnEventAtTheTarget) {
    for (const MessageKind kind : {MessageKind::atomic, MessageKind::put, MessageKind::put_strided,
                                   MessageKind::put_signal, MessageKind::flush}) {
        World world(Delivery::in_order);
        world.start();
        MessageHeader head;
        head.kind = kind;
        head.origin = 1;
        Bytes truncated(sizeof head + 3);
        std::memcpy(truncated.data(), &head, sizeof head);
        ASSERT_EQ(world.wires[1]->send({0}, world.signed_message(0, truncated), {}), Code::ok);
        npushmem_event event{};
        EXPECT_EQ(world.finish([&] { return world.at(0).poll_event(event); }), Code::ok);
        EXPECT_EQ(event.code, NPUSHMEM_E_PROTOCOL);
        EXPECT_EQ(event.pe, 1);
        EXPECT_THAT(text_of(event.message),
                    AllOf(HasSubstr("PE 1 on host elsewhere"), HasSubstr("fake wire with 19 bytes")));
        std::uint64_t value = 5;  // the peer is not lost by it
        EXPECT_EQ(world.at(0).put(world.queue[0], world.rma(1, 0, &value, 1), nullptr), Code::ok);
        EXPECT_EQ(world.finish([&] { return world.at(0).quiet(world.queue[0]); }), Code::ok);
    }
}

}  // namespace
}  // namespace npushmem::network
