// SPDX-License-Identifier: BSD-3-Clause
// How the connections of a TCP wire end, and what it does with those of foreign processes.
#include <gmock/gmock.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

#include <array>
#include <csignal>
#include <cstring>
#include <filesystem>
#include <memory>
#include <string>
#include <vector>

#include "tests/unit/transports/tcp/tcp_wires.hpp"
#include "transports/tcp/frame.hpp"

namespace npushmem::tcp {
namespace {

using network::WireContext;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;
using ::testing::Pair;
using ::testing::SizeIs;
using ::testing::UnorderedElementsAre;

// A connection to a PE by hand.
class ForeignClient {
public:
    explicit ForeignClient(const Bytes& address) {
        ByteReader in(address);
        socket_ = Socket::connect(Address::decode(in)).value();
        in.bytes(handshake.secret);
        handshake.pe = 0;
    }
    void send(std::span<const std::byte> bytes) const {
        while (socket_.send(bytes).outcome == Transfer::Outcome::would_block) {
        }
    }
    void send_handshake() const { send(std::as_bytes(std::span(&handshake, 1))); }
    // The server finds a reset.
    void reset() {
        const linger at_once{1, 0};
        ::setsockopt(socket_.fd(), SOL_SOCKET, SO_LINGER, &at_once, sizeof at_once);
        socket_ = Socket();
    }
    [[nodiscard]] bool is_closed() const {
        std::array<std::byte, 64> into;
        const auto outcome = socket_.receive(into).outcome;
        return outcome == Transfer::Outcome::end || outcome == Transfer::Outcome::failed;
    }

    Handshake handshake;

private:
    Socket socket_;
};

// A PE by hand, which accepts one connection.
class ForeignServer {
public:
    ForeignServer() : listener_(Socket::listen(loopback()).value()) {}

    [[nodiscard]] Bytes address() const {
        ByteWriter out;
        listener_.local_address().encode(out);
        return out.bytes(SipKey{}).take();
    }
    [[nodiscard]] bool accept() {
        int error = 0;
        if (!connection_.valid()) connection_ = listener_.accept(error);
        return connection_.valid();
    }
    void send(const FrameHeader& header, std::size_t payload = 32) const {
        (void)connection_.send(std::as_bytes(std::span(&header, 1)));
        if (payload > 0) (void)connection_.send(Bytes(payload));
    }
    void close() { connection_ = Socket(); }

private:
    Socket listener_;
    Socket connection_;
};

// What PE 1 has sent on lane 1 and the end of lane 0's connection are found at once.
TEST_F(TcpWires, WhatAPeerHasSentArrivesBeforeItsEnd) {
    connect();
    std::vector<std::byte> memory(std::size_t{3} << 20);  // more than a turn of receiving
    const auto registered = pair.wires[0]->register_memory(memory.data(), memory.size());
    ASSERT_TRUE(pair.wires[1]->add_peer(0, pair.wires[0]->address().value()).ok());
    const network::RemoteAddress place{{0, 1}, pair.wires[1]->import_key(0, registered.value().key).value(), 0, 0};
    ASSERT_EQ(pair.wires[1]->send({0, 1}, Bytes(8), {}), Code::ok);
    ASSERT_TRUE(pair.until([&] { return !pair.notes[0].messages.empty(); }));
    pair.notes[0].messages.clear();
    const std::vector<std::byte> data(memory.size(), std::byte{5});
    const Bytes last(16, std::byte{3});
    WireContext context;
    ASSERT_EQ(pair.wires[1]->write(place, data.data(), data.size(), context), Code::ok);
    ASSERT_EQ(pair.wires[1]->send({0, 1}, last, {}), Code::ok);
    // As far as the kernel takes it.
    for (int i = 0; i < 1000 && pair.wires[1]->has_unsent_messages(); ++i) (void)pair.wires[1]->progress(pair.notes[1]);
    if (pair.wires[1]->has_unsent_messages()) GTEST_SKIP() << "the kernel's buffers are smaller than 3 MiB";
    pair.wires[1].reset();
    while (pair.notes[0].closed_peers.empty() && pair.notes[0].losses.empty())
        (void)pair.wires[0]->progress(pair.notes[0]);
    EXPECT_THAT(pair.notes[0].messages, ElementsAre(last));
    EXPECT_TRUE(memory == data);
    EXPECT_THAT(pair.notes[0].closed_peers, ElementsAre(1));
    EXPECT_THAT(pair.notes[0].losses, IsEmpty());
}

// It has sent PE 0 nothing, so no message of it announces its end.
TEST_F(TcpWires, APeerThatOnlyServedClosesWithoutALoss) {
    connect();
    std::uint64_t word = 1;
    WireContext got;
    ASSERT_EQ(read(pair.place(0, 0), std::as_writable_bytes(std::span(&word, 1)), got), Code::ok);
    ASSERT_TRUE(completes());
    pair.wires[1].reset();
    ASSERT_TRUE(alone_until([&] { return !pair.notes[0].closed_peers.empty(); }));
    EXPECT_THAT(pair.notes[0].losses, IsEmpty());
}

TEST_F(TcpWires, OperationsOnALostConnectionFail) {
    connect();
    std::uint64_t word = 1;
    WireContext never;  // nobody answers it
    ASSERT_EQ(pair.wires[0]->read(pair.place(0, 0), &word, sizeof word, never), Code::ok);
    pair.wires[1].reset();
    ASSERT_TRUE(alone_until([&] { return !pair.notes[0].losses.empty(); }));
    EXPECT_THAT(pair.notes[0].completions, ElementsAre(Pair(&never, Code::peer_dead)));
}

// While its own connection to this PE stays open, as that of a peer that closes a connection for an error.
TEST_F(TcpWires, TheLossOfOneConnectionIsReportedWithinASecond) {
    ForeignServer server;
    ASSERT_TRUE(pair.wires[0]->add_peer(1, server.address()).ok());
    ForeignClient client(pair.wires[0]->address().value());
    client.handshake.pe = 1;
    client.handshake.lane = 1;
    client.send_handshake();
    ASSERT_EQ(pair.retry_until_posted([&] { return pair.wires[0]->send({1, 0}, Bytes(8), {}); }), Code::ok);
    ASSERT_TRUE(alone_until([&] { return server.accept(); }));
    server.close();
    EXPECT_TRUE(alone_until([&] { return !pair.notes[0].losses.empty(); }));
    EXPECT_FALSE(client.is_closed());
}

TEST_F(TcpWires, AForgottenPeersOperationsEndWithoutALoss) {
    std::vector<std::byte> memory(much);
    const network::RemoteAddress place = place_in(memory);
    const std::vector<std::byte> data(much);
    std::array<WireContext, 2> contexts;
    ASSERT_EQ(write(place, data, contexts[0]), Code::ok);
    std::uint64_t word = 0;
    ASSERT_EQ(pair.wires[0]->read(pair.place(0, 0), &word, sizeof word, contexts[1]), Code::ok);
    pair.wires[0]->forget(1);
    pair.wires[0]->forget(1);
    (void)pair.wires[0]->progress(pair.notes[0]);
    EXPECT_THAT(pair.notes[0].completions,
                UnorderedElementsAre(Pair(&contexts[0], Code::peer_dead), Pair(&contexts[1], Code::peer_dead)));
    EXPECT_THAT(pair.notes[0].losses, IsEmpty());
    pair.drive();
    ForeignClient late(pair.wires[0]->address().value());  // of the forgotten peer
    late.handshake.pe = 1;
    late.send_handshake();
    EXPECT_TRUE(alone_until([&] { return late.is_closed(); }));
    EXPECT_THAT(pair.notes[0].messages, IsEmpty());
}

TEST_F(TcpWires, APeerWhoseProcessHasEndedIsUnreachable) {
    pair.wires[1].reset();
    ASSERT_EQ(pair.wires[0]->send({1, 0}, Bytes(8), {}), Code::ok);
    ASSERT_TRUE(alone_until([&] { return !pair.notes[0].losses.empty(); }));
    EXPECT_THAT(pair.notes[0].losses,
                ElementsAre(Pair(network::LaneId{1, 0}, HasSubstr("cannot connect: Connection refused"))));
}

TEST_F(TcpWires, AddressesAndKeysThatAreNoneAreRefused) {
    Bytes address = pair.wires[1]->address().value();
    EXPECT_TRUE(pair.wires[0]->add_peer(1, address).ok());
    EXPECT_THAT(pair.wires[0]->route_to(1, address).value(), "tcp 127.0.0.1 -> 127.0.0.1");
    address[0] = std::byte{0xff};  // no family
    for (const Bytes& bad : {address, Bytes(address.size() - 1), Bytes(address.size() + 1), Bytes{}}) {
        EXPECT_EQ(pair.wires[0]->add_peer(1, bad).code(), Code::protocol);
        EXPECT_EQ(pair.wires[0]->route_to(1, bad).status().code(), Code::protocol);
    }
    EXPECT_EQ(pair.wires[0]->import_key(1, Bytes(7)).status().code(), Code::protocol);
    EXPECT_EQ(pair.wires[0]->send({1, 0}, Bytes(max_message_bytes + 1), {}), Code::argument);
}

TEST_F(TcpWires, AHandshakeWithoutTheSecretIsRejected) {
    const Bytes address = pair.wires[1]->address().value();
    for (const int wrong : {0, 1, 2, 3}) {
        ForeignClient client(address);
        if (wrong == 0) client.handshake.secret[15] ^= std::byte{1};
        if (wrong == 1) client.handshake.magic ^= 1;
        if (wrong == 2) client.handshake.pe = 2;
        if (wrong == 3) client.handshake.pe = -1;
        client.send_handshake();
        EXPECT_TRUE(pair.until([&] { return client.is_closed(); })) << wrong;
    }
    // The transport counts them: they are not signed.
    EXPECT_THAT(pair.notes[1].messages, SizeIs(4));
}

// It knows the secret of PE 0 only, and claims to be PE 1.
TEST_F(TcpWires, OperationsGoToThePeerOnly) {
    ForeignClient client(pair.wires[0]->address().value());
    client.handshake.pe = 1;
    client.send_handshake();
    FrameHeader header;
    header.kind = FrameKind::message;
    client.send(std::as_bytes(std::span(&header, 1)));
    ASSERT_TRUE(alone_until([&] { return !pair.notes[0].messages.empty(); }));
    EXPECT_NO_FATAL_FAILURE(connect());
}

// The ends of TCP connections of this process that do not delay acknowledgements. `delays`: lets all delay them first.
int ends_that_acknowledge_at_once(bool delays) {
    int ends = 0;
    for (const auto& entry : std::filesystem::directory_iterator("/proc/self/fd")) {
        const int fd = std::stoi(entry.path().filename().string());
        const int later = 0;
        int at_once = 0;
        socklen_t bytes = sizeof at_once;
        if (delays) (void)::setsockopt(fd, IPPROTO_TCP, TCP_QUICKACK, &later, sizeof later);
        if (::getsockopt(fd, IPPROTO_TCP, TCP_QUICKACK, &at_once, &bytes) == 0 && at_once != 0) ++ends;
    }
    return ends;
}

TEST_F(TcpWires, LongFramesAreAcknowledgedAtOnce) {
    connect();
    EXPECT_EQ(ends_that_acknowledge_at_once(true), 0);
    std::vector<std::byte> memory(65536);
    const std::vector<std::byte> data(memory.size(), std::byte{1});
    WireContext context;
    ASSERT_EQ(write(place_in(memory), data, context), Code::ok);
    ASSERT_TRUE(pair.until([&] { return memory.back() == std::byte{1}; }));
    EXPECT_GT(ends_that_acknowledge_at_once(false), 0);  // as it would be after 40 ms without data
}

TEST_F(TcpWires, AFrameThatIsNoneEndsTheConnection) {
    const Bytes address = pair.wires[1]->address().value();
    std::vector<FrameHeader> bad(7);
    bad[0].kind = static_cast<FrameKind>(0);
    bad[1].kind = static_cast<FrameKind>(99);
    bad[2].kind = FrameKind::data;  // nothing was read
    bad[3].kind = FrameKind::refusal;
    bad[4].kind = FrameKind::message;
    bad[4].bytes = max_message_bytes + 1;
    bad[5].kind = FrameKind::message;
    bad[5].bytes = ~std::uint64_t{0};
    bad[6].kind = FrameKind::welcome;
    for (const FrameHeader& header : bad) {
        ForeignClient client(address);
        client.send_handshake();
        client.send(std::as_bytes(std::span(&header, 1)));
        client.send(Bytes(2 * max_message_bytes));
        EXPECT_TRUE(pair.until([&] { return client.is_closed(); })) << static_cast<unsigned>(header.kind);
    }
    EXPECT_THAT(pair.notes[1].messages, IsEmpty());
}

TEST_F(TcpWires, AnAnswerThatIsNoneEndsTheConnection) {
    std::uint64_t word = 3;
    WireContext context;
    FrameHeader welcome;
    welcome.kind = FrameKind::welcome;
    std::vector<FrameHeader> bad(9);
    bad[0].kind = FrameKind::data;  // of another size than was read
    bad[0].bytes = 4;
    bad[1].kind = FrameKind::welcome;  // a second one
    // Before the welcome:
    bad[2].kind = FrameKind::data;
    bad[2].bytes = sizeof word;
    bad[3].kind = FrameKind::message;
    bad[4].kind = FrameKind::read;
    bad[5].kind = FrameKind::write;
    bad[6].kind = FrameKind::write_signal;
    bad[7].kind = FrameKind::refusal;
    bad[8].kind = FrameKind::goodbye;
    for (const FrameHeader& header : bad) {
        ForeignServer server;
        ASSERT_TRUE(pair.wires[0]->add_peer(1, server.address()).ok());
        ASSERT_EQ(pair.wires[0]->read(pair.place(0, 0), &word, sizeof word, context), Code::ok);
        ASSERT_TRUE(alone_until([&] { return server.accept(); }));
        if (&header < &bad[2]) server.send(welcome, 0);
        server.send(header);
        ASSERT_TRUE(alone_until([&] { return !pair.notes[0].losses.empty(); }));
        EXPECT_THAT(pair.notes[0].completions, ElementsAre(Pair(&context, Code::protocol)));
        pair.notes[0].completions.clear();
        pair.notes[0].losses.clear();
    }
    EXPECT_EQ(word, 3U);
}

// Frames arrive in any pieces.
TEST_F(TcpWires, FramesMayArriveByteByByte) {
    ForeignClient slow(pair.wires[1]->address().value());
    const auto send_bytes = [&](std::span<const std::byte> bytes) {
        for (const std::byte& each : bytes) {
            slow.send({&each, 1});
            pair.drive();
        }
    };
    send_bytes(std::as_bytes(std::span(&slow.handshake, 1)));
    FrameHeader header;
    header.kind = FrameKind::message;
    header.bytes = 3;
    send_bytes(std::as_bytes(std::span(&header, 1)));
    send_bytes(Bytes(3, std::byte{8}));
    header.kind = FrameKind::write_signal;
    header.bytes = 8;
    header.region = pair.key;
    header.offset = 8;
    const FrameSignal signal{pair.key, 16, 5};
    const std::uint64_t word = 4;
    send_bytes(std::as_bytes(std::span(&header, 1)));
    send_bytes(std::as_bytes(std::span(&signal, 1)));
    send_bytes(std::as_bytes(std::span(&word, 1)));
    EXPECT_TRUE(pair.until([&] { return std::atomic_ref(pair.words[2]).load(std::memory_order_acquire) == 5; }));
    EXPECT_EQ(pair.words[1], 4U);
    EXPECT_THAT(pair.notes[1].messages, ElementsAre(Bytes(3, std::byte{8})));
}

// They wait in the kernel's queue, and no connection of the job is closed in favour of them.
TEST_F(TcpWires, ConnectionsThatSendNothingAreLimited) {
    const Bytes address = pair.wires[1]->address().value();
    ForeignClient peer(address);  // has connected, but makes no progress yet
    std::vector<std::unique_ptr<ForeignClient>> silent;
    for (int i = 0; i < 300; ++i) silent.push_back(std::make_unique<ForeignClient>(address));
    for (int i = 0; i < 10; ++i) pair.drive();
    peer.send_handshake();
    FrameHeader header;
    header.kind = FrameKind::message;
    header.bytes = 3;
    peer.send(std::as_bytes(std::span(&header, 1)));
    peer.send(Bytes(3));
    EXPECT_TRUE(pair.until([&] { return pair.notes[1].messages.size() == 1; }));
    const std::size_t accepted = 2 * 1 + 256;  // PEs, lanes, foreign processes
    EXPECT_EQ(open_descriptors() - descriptors, 2 * 301 - (301 - accepted) + 1);
    for (const auto& each : silent) EXPECT_FALSE(each->is_closed());
}

// The connection of a process is also in the poller while a child of it is alive.
TEST_F(TcpWires, AChildOfTheProcessKeepsNoConnectionInThePoller) {
    connect();
    const pid_t child = ::fork();
    if (child == 0) {
        for (;;) ::pause();
    }
    ASSERT_GT(child, 0);
    pair.wires[0]->close({1, 0});
    (void)pair.wires[0]->progress(pair.notes[0]);
    pair.wires[1].reset();
    for (int i = 0; i < 100; ++i) (void)pair.wires[0]->progress(pair.notes[0]);  // no event of the closed connection
    EXPECT_EQ(::kill(child, SIGKILL), 0);
    EXPECT_EQ(::waitpid(child, nullptr, 0), child);
}

TEST_F(TcpWires, MemoryIsDeregisteredAfterItsPeersHaveEnded) {
    std::vector<std::byte> memory(much);
    const auto registered = pair.wires[1]->register_memory(memory.data(), memory.size());
    const Bytes address = pair.wires[1]->address().value();
    FrameHeader header;
    header.kind = FrameKind::write;
    header.bytes = much;
    header.region = registered.value().number;
    for (int i = 0; i < 3; ++i) {
        ForeignClient peer(address);
        peer.send_handshake();
        peer.send(std::as_bytes(std::span(&header, 1)));
        peer.send(Bytes(100, std::byte{1}));
        ASSERT_TRUE(pair.until([&] { return memory[99] == std::byte{1}; }));
        memory[99] = std::byte{0};
        peer.reset();
    }
    pair.wires[1]->deregister_memory(registered.value().number);
    pair.drive();
}

}  // namespace
}  // namespace npushmem::tcp
