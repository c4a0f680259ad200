// SPDX-License-Identifier: BSD-3-Clause
// Both sides of a connection over a fake one: room, order and ends that sockets do not produce on demand.
#include <gtest/gtest.h>

#include "fake_connection.hpp"
#include "mine_initiator.hpp"
#include "mine_target.hpp"

namespace mine_plugin {
namespace {

using Interest = Connection::Interest;
using Received = Connection::Received;

Header header_of(Kind kind) {
    Header out;
    out.kind = kind;
    return out;
}

// PE 0 requests operations on PE 1, with at most 4 in flight and pieces of 64 bytes.
class RequesterTest : public ::testing::Test {
protected:
    Code post(Kind kind, std::uint64_t bytes, std::uint64_t& token) {
        Operation operation;
        operation.data.kind = kind;
        operation.data.bytes = bytes;
        operation.local = local.data();
        operation.queue = queue;
        return requester.post(std::move(operation), token);
    }
    Code reply(const Bytes& payload = {}) {
        Header header = header_of(Kind::reply);
        header.bytes = payload.size();
        peer.push(header, payload);
        return requester.progress(buffer);
    }

    FakePeer peer;
    Requester requester{1, std::make_unique<FakeConnection>(peer), {4, 64}};
    std::shared_ptr<Queue> queue = std::make_shared<Queue>();
    Bytes local = Bytes(256, std::byte{7});
    Bytes buffer = Bytes(receive_buffer_bytes);
    std::uint64_t token = 0;
};

TEST_F(RequesterTest, APutIsSentInPiecesAsRoomPermits) {
    peer.room = 2;
    ASSERT_EQ(post(Kind::put, 150, token), Code::ok);
    EXPECT_EQ(peer.sent.size(), 2U);
    EXPECT_EQ(peer.interest, Interest::both);
    EXPECT_EQ(requester.test(*queue, token), Code::again) << "the source may not be reused yet";
    peer.room = 1;
    EXPECT_EQ(requester.progress(buffer), Code::ok);
    EXPECT_EQ(peer.interest, Interest::input);
    EXPECT_EQ(requester.test(*queue, token), Code::ok);
    ASSERT_EQ(peer.sent.size(), 3U);
    EXPECT_EQ(peer.sent[2].header.offset, 128U);
    EXPECT_EQ(peer.sent[2].payload.size(), 22U);
    EXPECT_EQ(peer.sent[1].header.wants_reply, 0) << "one reply for the whole put";
    EXPECT_FALSE(queue->is_quiet());
    EXPECT_EQ(reply(), Code::ok);
    EXPECT_TRUE(queue->is_quiet());
}

TEST_F(RequesterTest, AGetIsCompleteAfterTheLastReply) {
    ASSERT_EQ(post(Kind::get, 100, token), Code::ok);
    EXPECT_EQ(reply(Bytes(64, std::byte{1})), Code::ok);
    EXPECT_EQ(requester.test(*queue, token), Code::again);
    EXPECT_EQ(reply(Bytes(36, std::byte{2})), Code::ok);
    EXPECT_EQ(requester.test(*queue, token), Code::ok);
    EXPECT_EQ(local[63], std::byte{1});
    EXPECT_EQ(local[99], std::byte{2});
    EXPECT_EQ(local[100], std::byte{7});
}

TEST_F(RequesterTest, RepliesThatNobodyWaitsForAndOfAWrongLengthAreMalformed) {
    EXPECT_EQ(reply(), Code::protocol);
    ASSERT_EQ(post(Kind::get, 10, token), Code::ok);
    EXPECT_EQ(reply(Bytes(11)), Code::protocol);
    EXPECT_EQ(local[0], std::byte{7});
}

TEST_F(RequesterTest, FailEndsOutstandingOperationsAndTheConnection) {
    peer.room = 0;
    std::uint64_t second = 0;
    ASSERT_EQ(post(Kind::get, 8, token), Code::ok);
    ASSERT_EQ(post(Kind::put, 8, second), Code::ok);
    requester.fail(Code::peer_dead);
    EXPECT_FALSE(peer.is_connected);
    EXPECT_EQ(requester.test(*queue, token), Code::peer_dead);
    EXPECT_TRUE(queue->is_quiet());
    EXPECT_EQ(queue->take_failures(), Code::peer_dead);
    EXPECT_EQ(queue->take_failures(), Code::ok);
    EXPECT_EQ(post(Kind::put, 8, token), Code::peer_dead);
    EXPECT_EQ(requester.progress(buffer), Code::ok);
    requester.drop(*queue);
}

TEST_F(RequesterTest, AnEndWithoutAByeIsADeath) {
    peer.end = Received::closed;
    EXPECT_EQ(requester.progress(buffer), Code::unreachable);
    peer.end = Received::broken;
    EXPECT_EQ(requester.progress(buffer), Code::peer_dead);
}

// PE 0 serves a peer that knows the secret, 5.
class ResponderTest : public ::testing::Test {
protected:
    Code say_hello(std::uint64_t secret) {
        Header hello = header_of(Kind::hello);
        hello.pe = 1;
        hello.operand = secret;
        peer.push(hello);
        return responder.progress(buffer);
    }
    // Requests `bytes` bytes at `offset`.
    void push_get(std::uint64_t offset, std::uint64_t bytes) {
        Header get = header_of(Kind::get);
        get.region = region;
        get.offset = offset;
        get.bytes = bytes;
        get.wants_reply = 1;
        peer.push(get);
    }

    FakePeer peer;
    Regions regions;
    Responder responder{std::make_unique<FakeConnection>(peer), regions, 5};
    Bytes memory = Bytes(32, std::byte{9});
    npushmem_memory registered{sizeof registered, -1, 0, memory.data(), memory.size(), nullptr, 0, 0};
    std::uint64_t region = regions.add(registered);
    Bytes buffer = Bytes(receive_buffer_bytes);
};

TEST_F(ResponderTest, RequestsNeedAHelloWithTheSecret) {
    push_get(0, 8);
    EXPECT_EQ(responder.progress(buffer), Code::protocol);
    EXPECT_EQ(say_hello(6), Code::protocol);
    EXPECT_EQ(responder.pe(), -1);
    EXPECT_EQ(say_hello(5), Code::ok);
    EXPECT_EQ(responder.pe(), 1);
}

TEST_F(ResponderTest, ARequestIsNotReadWhileAReplyWaitsForRoom) {
    ASSERT_EQ(say_hello(5), Code::ok);
    peer.room = 0;
    push_get(0, 8);
    push_get(8, 16);
    EXPECT_EQ(responder.progress(buffer), Code::ok);
    EXPECT_EQ(peer.input.size(), 1U);
    EXPECT_EQ(peer.interest, Interest::room);
    peer.room = 2;
    EXPECT_EQ(responder.progress(buffer), Code::ok);
    EXPECT_EQ(peer.interest, Interest::input);
    ASSERT_EQ(peer.sent.size(), 2U);
    EXPECT_EQ(peer.sent[0].payload, Bytes(8, std::byte{9}));
    EXPECT_EQ(peer.sent[1].payload, Bytes(16, std::byte{9}));
}

TEST_F(ResponderTest, AnEndWithoutAByeIsADeathOnceThePeerIsKnown) {
    peer.end = Received::broken;
    EXPECT_EQ(responder.progress(buffer), Code::unreachable);
    EXPECT_EQ(say_hello(5), Code::peer_dead);
    peer.end = Received::closed;
    EXPECT_EQ(responder.progress(buffer), Code::unreachable);
}

}  // namespace
}  // namespace mine_plugin
