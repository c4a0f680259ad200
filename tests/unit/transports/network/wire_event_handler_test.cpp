// SPDX-License-Identifier: BSD-3-Clause
#include "transports/network/wire_event_handler.hpp"

#include <gmock/gmock.h>

#include <string>

#include "tests/unit/transports/network/network_world.hpp"

namespace npushmem::network {
namespace {

using fakes::World;
using ::testing::AllOf;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::SizeIs;

// A fetch of PE 0 from PE 1, under way, and answers to it that its target has not sent.
class AnswerTest : public ::testing::Test {
protected:
    AnswerTest() {
        world_.start();
        npushmem_atomic fetch = world_.atomic(1, NPUSHMEM_ATOMIC_FETCH_ADD, 0, 1);
        fetch.result = &fetched_;
        EXPECT_EQ(world_.at(0).atomic(world_.queue[0], fetch, &ticket_), Code::ok);
    }
    void answer(int origin, std::int32_t code) {
        Answer forged = make_message<Answer>(MessageKind::answer, origin);
        forged.ticket = ticket_;
        forged.value = 99;
        forged.code = code;
        EXPECT_EQ(world_.wires[static_cast<std::size_t>(origin)]->send({0, 0},
                                                                       world_.signed_message(0, bytes_of(forged)), {}),
                  Code::ok);
    }

    Code test() { return world_.at(0).test(world_.queue[0], ticket_); }

    World world_{Delivery::in_order};
    std::uint64_t ticket_ = 0;
    std::uint64_t fetched_ = 7;
};

TEST_F(AnswerTest, OfAnotherPeIsIgnored) {
    world_.network.hold = {1, 0};  // the target's answer arrives last
    answer(2, NPUSHMEM_OK);
    world_.deliver();
    EXPECT_EQ(test(), Code::again);
    EXPECT_EQ(fetched_, 7U);
    world_.network.hold.reset();
    EXPECT_EQ(world_.finish([&] { return test(); }), Code::ok);
    EXPECT_EQ(fetched_, 0U);
}

TEST_F(AnswerTest, WithTheCodeAgainEndsTheOperationWithAnError) {
    answer(1, NPUSHMEM_AGAIN);
    world_.deliver();
    EXPECT_EQ(test(), Code::protocol);
}

TEST_F(AnswerTest, WithAnUnknownCodeEndsTheOperationWithAnError) {
    answer(1, 12345);
    world_.deliver();
    EXPECT_EQ(test(), Code::protocol);
}

// The wire would write the answer to memory that the caller has got back.
TEST(Goodbye, DoesNotEndAReadWhoseAnswerIsOnItsWay) {
    World world{Delivery::on_flush};
    world.start();
    world.words[1][0] = 77;
    world.wires[0]->keeps_forgotten = true;
    world.network.hold = {0, 0};  // the read arrives last
    std::uint64_t word = 0;
    std::uint64_t token = 0;
    ASSERT_EQ(world.at(0).get(world.queue[0], world.rma(1, 0, &word, 1), &token), Code::ok);
    const auto goodbye = make_message<MessageHeader>(MessageKind::goodbye, 1);
    ASSERT_EQ(world.wires[1]->send({0, 0}, world.signed_message(0, bytes_of(goodbye)), {}), Code::ok);
    world.deliver();
    EXPECT_EQ(world.at(0).test(world.queue[0], token), Code::again);
    std::uint64_t value = 5;
    EXPECT_EQ(world.at(0).put(world.queue[0], world.rma(1, 0, &value, 1), nullptr), Code::peer_dead);
    world.network.hold.reset();
    EXPECT_EQ(world.finish([&] { return world.at(0).test(world.queue[0], token); }), Code::ok);
    EXPECT_EQ(word, 77U);
}

TEST(PeerThatHasClosed, IsNoLossUnlessOperationsAreUnderWay) {
    World world{Delivery::in_order};
    world.start();
    std::uint64_t value = 5;
    ASSERT_EQ(world.put(1, value), Code::ok);
    ASSERT_EQ(world.quiet(), Code::ok);
    ASSERT_EQ(world.put(2, value), Code::ok);
    npushmem_event event{};
    world.wires[0]->end = 1;
    (void)world.at(0).progress();
    EXPECT_EQ(world.at(0).poll_event(event), Code::again) << event.message;
    EXPECT_EQ(world.put(1, value), Code::peer_dead);
    world.wires[0]->end = 2;
    (void)world.at(0).progress();
    EXPECT_EQ(world.quiet(), Code::peer_dead);
    ASSERT_EQ(world.at(0).poll_event(event), Code::ok);
    EXPECT_EQ(event.pe, 2);
}

// A process outside of the job knows the address of PE 0 and the layout of messages, but not the key.
class StrangerTest : public ::testing::Test {
protected:
    StrangerTest() { world_.start(); }
    void send(std::span<const std::byte> message) {
        EXPECT_EQ(world_.wires[2]->send({0, 0}, message, {}), Code::ok);
        deliver();
    }
    void deliver() {
        while (world_.network.step()) (void)world_.at(0).progress();
        (void)world_.at(0).progress();
    }
    // An event would be the result of the program's next quiet, and end the job.
    void expect_no_event() {
        npushmem_event event{};
        EXPECT_EQ(world_.at(0).poll_event(event), Code::again) << event.message;
    }
    // Adds 5 to the first word of PE 0.
    static AtomicRequest addition() {
        AtomicRequest request = make_message<AtomicRequest>(MessageKind::atomic, 2);
        request.region = 1;
        request.operation = NPUSHMEM_ATOMIC_ADD;
        request.width = 8;
        request.operand = 5;
        return request;
    }

    World world_{Delivery::in_order};
};

TEST_F(StrangerTest, CannotChangeMemory) {
    send(bytes_of(addition()));
    EXPECT_EQ(world_.word(0, 0), 0U);
    EXPECT_THAT(world_.take_log(), ElementsAre(AllOf(HasSubstr("1 message that no PE of this job has sent"),
                                                     HasSubstr("fake wire"), HasSubstr("the address of PE 0"))));
    expect_no_event();
    send(world_.signed_message(0, bytes_of(addition())));
    EXPECT_EQ(world_.word(0, 0), 5U) << "a PE of the job can";
}

TEST_F(StrangerTest, CannotUseTheTagOfAMessageForAnother) {
    const Bytes whole = world_.signed_message(0, bytes_of(addition()));
    for (std::size_t at = 0; at < whole.size(); ++at) {
        Bytes changed = whole;
        changed[at] ^= std::byte{1};
        send(changed);
    }
    Bytes longer = whole;
    longer.emplace_back();
    send(longer);
    send(std::span(whole).first(whole.size() - 1));
    send(world_.signed_message(1, bytes_of(addition())));  // to another PE
    EXPECT_EQ(world_.word(0, 0), 0U);
}

TEST_F(StrangerTest, GetsNoAnswer) {
    deliver();  // the messages of the start
    const auto ping = make_message<MessageHeader>(MessageKind::ping, 1);
    EXPECT_EQ(world_.wires[2]->send({0, 0}, bytes_of(ping), {}), Code::ok);
    EXPECT_TRUE(world_.network.step());
    (void)world_.at(0).progress();
    EXPECT_FALSE(world_.network.step()) << "an answer is under way";
}

TEST_F(StrangerTest, DoesNotFillTheLog) {
    for (int i = 0; i < 1000; ++i) send(Bytes(static_cast<std::size_t>(i % 100), std::byte{0x57}));
    const auto log = world_.take_log();
    EXPECT_THAT(log, SizeIs(10));
    EXPECT_THAT(log.back(), HasSubstr("512 messages"));
    expect_no_event();
}

}  // namespace
}  // namespace npushmem::network
