// SPDX-License-Identifier: BSD-3-Clause
#include "transports/tcp/send_queue.hpp"

#include <gtest/gtest.h>
#include <sys/socket.h>

#include <array>
#include <cerrno>
#include <cstring>
#include <string>
#include <string_view>

namespace npushmem::tcp {
namespace {

std::span<const std::byte> bytes_of_text(std::string_view text) { return std::as_bytes(std::span(text)); }

class SendQueues : public ::testing::Test {
protected:
    SendQueues() {
        std::array<int, 2> fds{-1, -1};
        EXPECT_EQ(::socketpair(AF_UNIX, SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0, fds.data()), 0);
        socket = Socket(fds[0]);
        peer = Socket(fds[1]);
        queue.open();
    }

    [[nodiscard]] std::string received() const {
        std::array<std::byte, 65536> room;
        std::string out;
        for (auto got = peer.receive(room); got.outcome == Transfer::Outcome::some; got = peer.receive(room))
            out.append(reinterpret_cast<const char*>(room.data()), got.bytes);
        return out;
    }
    void add_to_batch(std::string_view head, std::string_view payload) {
        ASSERT_TRUE(queue.has_room_in_batch(head.size() + payload.size()));
        queue.add_to_batch(bytes_of_text(head), {.first = bytes_of_text(payload)});
    }
    [[nodiscard]] bool post(std::string_view head, std::string_view payload) {
        return queue.post(socket, bytes_of_text(head), {.first = bytes_of_text(payload)});
    }
    void fill_socket() {
        const std::string filler(4096, 'f');
        while (socket.send(bytes_of_text(filler)).outcome == Transfer::Outcome::some) {
        }
    }

    Socket socket;
    Socket peer;
    SendQueue queue;
};

TEST_F(SendQueues, ABatchLeavesAsAWhole) {
    add_to_batch("a", "1");
    add_to_batch("b", "");
    add_to_batch("c", "3");
    EXPECT_EQ(received(), "");
    EXPECT_TRUE(queue.has_operations());
    EXPECT_FALSE(queue.must_write());  // the socket has room
    ASSERT_TRUE(queue.send_batch(socket));
    EXPECT_EQ(received(), "a1bc3");
    EXPECT_TRUE(queue.empty());
    ASSERT_TRUE(queue.send_batch(socket));
    EXPECT_EQ(received(), "");
}

TEST_F(SendQueues, AFrameThatIsPostedFollowsTheBatch) {
    add_to_batch("a", "1");
    ASSERT_TRUE(post("b", "2"));
    EXPECT_EQ(received(), "a1b2");
    EXPECT_TRUE(queue.empty());
}

TEST_F(SendQueues, ABatchThatFindsNoRoomStaysInOrder) {
    fill_socket();
    add_to_batch("a", "1");
    ASSERT_TRUE(post("b", "2"));
    EXPECT_TRUE(queue.must_write());
    EXPECT_FALSE(queue.has_batch());
    EXPECT_FALSE(queue.has_room_in_batch(2));  // it would overtake
    ASSERT_TRUE(post("c", "3"));
    (void)received();
    bool moved = false;
    ASSERT_TRUE(queue.flush(socket, moved));
    EXPECT_TRUE(moved);
    EXPECT_EQ(received(), "a1b2c3");
    EXPECT_TRUE(queue.empty());
    EXPECT_TRUE(queue.has_room());
}

TEST_F(SendQueues, ABatchThatFindsRoomForAPartIsContinued) {
    std::string sent;
    for (int i = 0; queue.has_room_in_batch(4096); ++i) {
        const std::string payload(4095, static_cast<char>('a' + i));
        add_to_batch("-", payload);
        sent += "-" + payload;
    }
    const int little = 1;  // the kernel raises it to its minimum
    ASSERT_EQ(::setsockopt(socket.fd(), SOL_SOCKET, SO_SNDBUF, &little, sizeof little), 0);
    ASSERT_TRUE(post("b", "2"));
    ASSERT_TRUE(queue.must_write());
    std::string got;
    for (bool moved = true; queue.must_write() && moved;) {
        got += received();
        moved = false;
        ASSERT_TRUE(queue.flush(socket, moved));
    }
    EXPECT_EQ(got + received(), sent + "b2");
}

TEST_F(SendQueues, AFullBatchHasNoRoom) {
    const std::string payload(1024, 'p');
    std::size_t bytes = 0;
    for (; queue.has_room_in_batch(1 + payload.size()); bytes += 1 + payload.size()) add_to_batch("h", payload);
    EXPECT_GT(bytes, 0U);
    ASSERT_TRUE(queue.send_batch(socket));
    EXPECT_EQ(received().size(), bytes);
    EXPECT_TRUE(queue.has_room_in_batch(1 + payload.size()));
}

TEST_F(SendQueues, AQueueThatIsNotOpenHasNoBatch) {
    const SendQueue closed;
    EXPECT_FALSE(closed.has_room_in_batch(1));
}

TEST_F(SendQueues, ABatchToAClosedSocketFails) {
    add_to_batch("a", "1");
    peer = Socket();
    EXPECT_FALSE(queue.send_batch(socket));
    EXPECT_EQ(queue.error(), EPIPE);
}

TEST_F(SendQueues, DropLeavesNoBatch) {
    add_to_batch("a", "1");
    EXPECT_TRUE(queue.drop().empty());
    EXPECT_TRUE(queue.empty());
    ASSERT_TRUE(queue.send_batch(socket));
    EXPECT_EQ(received(), "");
}

}  // namespace
}  // namespace npushmem::tcp
