// SPDX-License-Identifier: BSD-3-Clause
#include "core/tools/run/channel.hpp"

#include <fcntl.h>
#include <gtest/gtest.h>
#include <unistd.h>

#include <array>

namespace npushmem::run {
namespace {

TEST(Channel, MessagesKeepTheirBoundsAndPayloads) {
    auto [left, right] = std::move(Channel::pair()).value();
    EXPECT_TRUE(left.send(Message{MessageKind::ended, 3, 77, 9, 1}));
    EXPECT_TRUE(left.send(Message{}, std::string_view("A=1\0B=2\0", 8)));
    const Received first = right.receive(true);
    EXPECT_EQ(first.state, Received::State::message);
    EXPECT_EQ(first.message.pe, 3);
    EXPECT_EQ(first.message.pid, 77);
    EXPECT_EQ(first.payload, "");
    EXPECT_EQ(right.receive(true).payload, std::string("A=1\0B=2\0", 8));
}

TEST(Channel, DistinguishesNoMessageFromAClosedPeer) {
    auto [left, right] = std::move(Channel::pair()).value();
    EXPECT_EQ(right.receive(false).state, Received::State::nothing);
    EXPECT_TRUE(left.send(Message{}));
    left.close();
    EXPECT_EQ(right.receive(false).state, Received::State::message);
    EXPECT_EQ(right.receive(false).state, Received::State::closed);
    EXPECT_EQ(right.receive(true).state, Received::State::closed);
    EXPECT_FALSE(right.send(Message{}));
}

TEST(Channel, HandsDescriptorsOverClosedOnExec) {
    auto [left, right] = std::move(Channel::pair()).value();
    std::array<int, 2> ends{};
    ASSERT_EQ(::pipe2(ends.data(), O_CLOEXEC), 0);
    FileDescriptor read(ends[0]);
    FileDescriptor write(ends[1]);
    EXPECT_TRUE(left.send(Message{}, {}, ends));
    Received received = right.receive(true);
    ASSERT_EQ(received.descriptors.size(), 2U);
    EXPECT_NE(::fcntl(received.descriptors[0].get(), F_GETFD) & FD_CLOEXEC, 0);
    write.reset();
    EXPECT_EQ(::write(received.descriptors[1].get(), "x", 1), 1);
    char byte = 0;
    EXPECT_EQ(::read(read.get(), &byte, 1), 1);
    EXPECT_EQ(byte, 'x');
}

}  // namespace
}  // namespace npushmem::run
