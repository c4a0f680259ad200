// SPDX-License-Identifier: BSD-3-Clause
#include "bootstrap/rendezvous/handshake_acceptor.hpp"

#include <gmock/gmock.h>

#include "tests/unit/bootstrap/rendezvous/raw_client.hpp"

namespace npushmem::rendezvous {
namespace {

using ::testing::IsEmpty;
using ::testing::SizeIs;

constexpr std::uint32_t acceptor_session = 5;
const Credentials ours{{std::byte{1}}, {std::byte{2}}};
const Credentials wrong_secret{{std::byte{1}}, {std::byte{3}}};
const Credentials other_job{{std::byte{9}}, {std::byte{2}}};

class HandshakeAcceptorTest : public ::testing::Test {
protected:
    static constexpr HandshakeAcceptor::Limits limits{4, std::chrono::seconds{10}};

    HandshakeAcceptor acceptor_ = make();
    Moment now_ = Clock::now();

    static HandshakeAcceptor make() {
        auto listener = Socket::listen(Address::parse("127.0.0.1", 0).value());
        auto find = [](const Nonce& job) { return job == ours.job ? std::optional(ours) : std::nullopt; };
        return std::move(HandshakeAcceptor::make(std::move(listener).value(), acceptor_session, find, limits)).value();
    }

    // Serves when the acceptor's descriptor says that there is something to do.
    std::vector<AuthenticatedConnection> serve_when_ready() {
        constexpr int test_patience_ms = 20000;
        pollfd waiting{acceptor_.fd(), POLLIN, 0};
        EXPECT_EQ(::poll(&waiting, 1, test_patience_ms), 1);
        return acceptor_.serve(now_);
    }

    // Accepts one connection; on the loopback interface a connection is there as soon as connect() was called.
    RawClient connect_client() {
        RawClient client(acceptor_.address());
        serve_when_ready();
        return client;
    }

    // The handshake of a client while this thread also runs the acceptor.
    ConnectionKeys greet(const RawClient& client, const Credentials& credentials,
                         std::uint32_t in_session = acceptor_session) {
        const Nonce mine{std::byte{4}};
        client.send(raw_frame({}, in_session, 0, FrameType::hello, Hello{credentials.job, mine}.encode()));
        serve_when_ready();
        const Buffer answer = client.receive(FrameHeader::bytes + sizeof(Nonce));
        Nonce theirs{};
        if (answer.size() == FrameHeader::bytes + theirs.size())
            std::ranges::copy(std::span(answer).subspan(FrameHeader::bytes), theirs.begin());
        return derive_keys(credentials, in_session, mine, theirs);
    }
};

const Buffer some_payload(20, std::byte{6});

TEST_F(HandshakeAcceptorTest, AcceptsClientsThatKnowTheSecret) {
    const RawClient client = connect_client();
    const ConnectionKeys keys = greet(client, ours);
    client.send(raw_frame(keys.connector, acceptor_session, 0, FrameType::join, some_payload));
    const auto admitted = serve_when_ready();
    ASSERT_THAT(admitted, SizeIs(1));
    EXPECT_EQ(admitted[0].job, ours.job);
    EXPECT_EQ(admitted[0].first.payload, some_payload);
    EXPECT_EQ(acceptor_.pending_connections(), 0U);
}

TEST_F(HandshakeAcceptorTest, RejectsWrongSecretsAndUnknownJobsAlike) {
    for (const Credentials& each : {wrong_secret, other_job}) {
        const RawClient client = connect_client();
        const ConnectionKeys keys = greet(client, each);
        client.send(raw_frame(keys.connector, acceptor_session, 0, FrameType::join, some_payload));
        EXPECT_THAT(serve_when_ready(), IsEmpty());
        EXPECT_TRUE(client.is_rejected());
    }
}

TEST_F(HandshakeAcceptorTest, RejectsOtherSessions) {
    const RawClient client = connect_client();
    client.send(raw_frame({}, acceptor_session + 1, 0, FrameType::hello, Hello{ours.job, {}}.encode()));
    EXPECT_THAT(serve_when_ready(), IsEmpty());
    EXPECT_TRUE(client.is_rejected());
}

TEST_F(HandshakeAcceptorTest, RejectsReplays) {
    const RawClient honest = connect_client();
    const ConnectionKeys keys = greet(honest, ours);
    const Buffer join = raw_frame(keys.connector, acceptor_session, 0, FrameType::join, some_payload);
    honest.send(join);
    ASSERT_THAT(serve_when_ready(), SizeIs(1));

    const RawClient replaying = connect_client();
    greet(replaying, ours);  // the same hello, byte for byte; the answer's nonce is new
    replaying.send(join);
    EXPECT_THAT(serve_when_ready(), IsEmpty());
    EXPECT_TRUE(replaying.is_rejected());
}

TEST_F(HandshakeAcceptorTest, RejectsGarbage) {
    const RawClient client = connect_client();
    client.send(Buffer(500, std::byte{'G'}));
    EXPECT_THAT(serve_when_ready(), IsEmpty());
    EXPECT_TRUE(client.is_rejected());
}

TEST_F(HandshakeAcceptorTest, ReportsItsVersionToAnotherVersion) {
    const RawClient client = connect_client();
    Buffer hello = raw_frame({}, acceptor_session, 0, FrameType::hello, Hello{ours.job, {}}.encode());
    hello[4] = std::byte{protocol_version + 1};
    client.send(hello);
    EXPECT_THAT(serve_when_ready(), IsEmpty());
    const Buffer answer = client.receive(FrameHeader::bytes);
    ASSERT_EQ(answer.size(), FrameHeader::bytes);
    EXPECT_EQ(answer[4], std::byte{protocol_version});
    EXPECT_TRUE(client.is_rejected());
}

TEST_F(HandshakeAcceptorTest, TimesOutTheSilentAndTheSlow) {
    const RawClient silent = connect_client();
    const RawClient slow = connect_client();
    slow.send(Buffer(1, std::byte{'N'}));
    serve_when_ready();
    EXPECT_EQ(acceptor_.pending_connections(), 2U);
    EXPECT_FALSE(acceptor_.next_timeout().passed(now_ + std::chrono::seconds{9}));
    now_ += std::chrono::seconds{11};
    EXPECT_TRUE(acceptor_.next_timeout().passed(now_));
    acceptor_.serve(now_);
    EXPECT_EQ(acceptor_.pending_connections(), 0U);
    EXPECT_TRUE(silent.is_rejected());
    EXPECT_TRUE(slow.is_rejected());
}

TEST_F(HandshakeAcceptorTest, TheOldestPendingConnectionIsClosedForTheNewest) {
    std::vector<RawClient> crowd;
    for (std::size_t i = 0; i < limits.pending_connections; ++i) crowd.push_back(connect_client());
    const RawClient honest = connect_client();
    EXPECT_EQ(acceptor_.pending_connections(), limits.pending_connections);
    EXPECT_TRUE(crowd.front().is_rejected());
    const ConnectionKeys keys = greet(honest, ours);
    honest.send(raw_frame(keys.connector, acceptor_session, 0, FrameType::join, some_payload));
    EXPECT_THAT(serve_when_ready(), SizeIs(1));
}

TEST_F(HandshakeAcceptorTest, RejectsIntroductionsThatAreTooLong) {
    const RawClient client = connect_client();
    const ConnectionKeys keys = greet(client, ours);
    client.send(raw_frame(keys.connector, acceptor_session, 0, FrameType::up, Buffer(4096)));
    EXPECT_THAT(serve_when_ready(), IsEmpty());
    EXPECT_TRUE(client.is_rejected());
}

}  // namespace
}  // namespace npushmem::rendezvous
