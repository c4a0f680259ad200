// SPDX-License-Identifier: BSD-3-Clause
#include "bootstrap/rendezvous/channel.hpp"

#include <gmock/gmock.h>
#include <sys/socket.h>

#include <algorithm>
#include <array>

#include "bootstrap/rendezvous/settings.hpp"
#include "tests/unit/bootstrap/rendezvous/raw_client.hpp"

namespace npushmem::rendezvous {

namespace {

using ::testing::HasSubstr;

using Raw = std::array<std::byte, FrameHeader::bytes>;

Raw raw_of(const FrameHeader& header) {
    Raw raw{};
    std::ranges::copy(header.encode(), raw.begin());
    std::ranges::copy(header.tag, raw.begin() + FrameHeader::signed_bytes);
    return raw;
}

const FrameHeader sample{FrameType::up, 7, 100, 0x1122334455667788U, {std::byte{42}}};

TEST(FrameHeader, IsReadAsItWasWritten) {
    const FrameHeader read = FrameHeader::parse(raw_of(sample)).value();
    EXPECT_EQ(read.type, sample.type);
    EXPECT_EQ(read.session, sample.session);
    EXPECT_EQ(read.length, sample.length);
    EXPECT_EQ(read.sequence, sample.sequence);
    EXPECT_EQ(read.tag, sample.tag);
}

TEST(FrameHeader, HasTheDocumentedLayout) {
    const Raw raw = raw_of(sample);
    EXPECT_EQ(raw.size(), 40U);
    EXPECT_EQ(std::to_integer<char>(raw[0]), 'N');
    EXPECT_EQ(std::to_integer<char>(raw[3]), 'B');
    EXPECT_EQ(raw[4], std::byte{protocol_version});
    EXPECT_EQ(raw[6], std::byte{7});
    EXPECT_EQ(raw[8], std::byte{7});
    EXPECT_EQ(raw[12], std::byte{100});
    EXPECT_EQ(raw[16], std::byte{0x88});
    EXPECT_EQ(raw[24], std::byte{42});
}

TEST(FrameHeader, RejectsMalformedBytes) {
    EXPECT_EQ(FrameHeader::parse(Raw{}).status().code(), Code::protocol);
    Raw raw = raw_of(sample);
    raw[6] = std::byte{0};
    EXPECT_THAT(FrameHeader::parse(raw).status().message(), HasSubstr("unknown type 0"));
    raw[6] = std::byte{11};
    EXPECT_THAT(FrameHeader::parse(raw).status().message(), HasSubstr("unknown type 11"));
}

TEST(FrameHeader, DistinguishesAnotherVersionFromGarbage) {
    Raw raw = raw_of(sample);
    raw[4] = std::byte{protocol_version + 1};
    const Status refused = FrameHeader::parse(raw).status();
    EXPECT_EQ(refused.code(), Code::unsupported);
    EXPECT_THAT(refused.message(), HasSubstr("uses version 2"));
}

TEST(FrameHeader, RefusesLengthsAboveTheTypesLimit) {
    for (int type = 1; type <= 10; ++type) {
        FrameHeader header = sample;
        header.type = static_cast<FrameType>(type);
        header.length = static_cast<std::uint32_t>(payload_limit(header.type));
        EXPECT_TRUE(FrameHeader::parse(raw_of(header)).ok()) << type;
        ++header.length;
        EXPECT_EQ(FrameHeader::parse(raw_of(header)).status().code(), Code::protocol) << type;
    }
}

TEST(Sign, CoversHeaderPayloadAndKey) {
    const SipKey key{std::byte{1}};
    const Buffer payload{std::byte{5}, std::byte{6}};
    const SipTag tag = sign(key, sample, payload);
    EXPECT_EQ(sign(key, sample, payload), tag);
    EXPECT_NE(sign(SipKey{std::byte{2}}, sample, payload), tag);
    EXPECT_NE(sign(key, sample, Buffer{std::byte{5}, std::byte{7}}), tag);
    FrameHeader other = sample;
    other.sequence += 1;
    EXPECT_NE(sign(key, other, payload), tag);
    other = sample;
    other.session += 1;
    EXPECT_NE(sign(key, other, payload), tag);
    other = sample;
    other.type = FrameType::down;
    EXPECT_NE(sign(key, other, payload), tag);
}

constexpr std::uint32_t session = 3;
const SipKey to_right{std::byte{1}};
const SipKey to_left{std::byte{2}};
const Buffer hello_bytes(32, std::byte{7});

std::array<Socket, 2> pair() {
    std::array<int, 2> fds{};
    EXPECT_EQ(::socketpair(AF_UNIX, SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0, fds.data()), 0);
    return {Socket(fds[0]), Socket(fds[1])};
}

class ChannelTest : public ::testing::Test {
protected:
    ChannelTest() {
        auto [a, b] = pair();
        left_.emplace(std::move(a), session, limits::chunk_bytes + 64);
        right_.emplace(std::move(b), session, limits::chunk_bytes + 64);
    }

    void secure() {
        left_->secure(to_right, to_left);
        right_->secure(to_left, to_right);
    }

    // What the right side makes of raw bytes from the left.
    Result<std::optional<Frame>> right_reads(std::span<const std::byte> bytes) {
        EXPECT_EQ(left_->socket().send(bytes).bytes, bytes.size());
        return next_right();
    }

    Result<std::optional<Frame>> next_right() {
        for (;;) {
            const auto input = right_->fill();
            auto frame = right_->next();
            if (!frame.ok() || frame.value() || input != Channel::Input::some) return frame;
        }
    }

    std::optional<Channel> left_;
    std::optional<Channel> right_;
};

TEST_F(ChannelTest, CarriesSignedFramesInOrder) {
    secure();
    left_->queue(FrameType::up, {hello_bytes, Buffer{std::byte{8}}});
    left_->queue(FrameType::bye, {});
    left_->flush();
    const auto first = next_right();
    ASSERT_TRUE(first.ok() && first.value());
    EXPECT_EQ(first.value()->type, FrameType::up);
    EXPECT_EQ(first.value()->payload.size(), 33U);
    const auto second = right_->next();
    ASSERT_TRUE(second.ok() && second.value());
    EXPECT_EQ(second.value()->type, FrameType::bye);
    EXPECT_FALSE(right_->next().value().has_value());
}

TEST_F(ChannelTest, ReadsFramesThatArriveByteByByte) {
    secure();
    const Buffer frame = raw_frame(to_right, session, 0, FrameType::up, hello_bytes);
    for (std::size_t i = 0; i + 1 < frame.size(); ++i) {
        const auto read = right_reads(std::span(frame).subspan(i, 1));
        ASSERT_TRUE(read.ok());
        ASSERT_FALSE(read.value().has_value()) << i;
    }
    EXPECT_TRUE(right_reads(std::span(frame).last(1)).value().has_value());
}

TEST_F(ChannelTest, QueuesBytesThatTheSocketDoesNotAccept) {
    secure();
    const Buffer big(limits::chunk_bytes, std::byte{9});
    constexpr int frames = 64;
    for (int i = 0; i < frames; ++i) left_->queue(FrameType::down, {big});
    left_->flush();
    EXPECT_GT(left_->queued(), 0U);
    for (int i = 0; i < frames; ++i) {
        std::optional<Frame> got;
        while (!got) {
            left_->flush();
            right_->fill();
            auto next = right_->next();
            ASSERT_TRUE(next.ok()) << next.status().message();
            got = std::move(next).value();
        }
        ASSERT_EQ(got->payload, big);
    }
    EXPECT_EQ(left_->queued(), 0U);
}

TEST_F(ChannelTest, RejectsEveryFlippedBit) {
    const Buffer good = raw_frame(to_right, session, 0, FrameType::up, Buffer(3, std::byte{1}));
    for (std::size_t bit = 0; bit < 8 * good.size(); ++bit) {
        auto [a, b] = pair();
        left_.emplace(std::move(a), session, 1024);
        right_.emplace(std::move(b), session, 1024);
        secure();
        Buffer bad = good;
        bad[bit / 8] ^= static_cast<std::byte>(1U << (bit % 8));
        const auto read = right_reads(bad);
        ASSERT_FALSE(read.ok() && read.value().has_value()) << "bit " << bit;
    }
}

TEST_F(ChannelTest, RefusesReplaysReflectionsAndOtherSessions) {
    secure();
    const Buffer first = raw_frame(to_right, session, 0, FrameType::up, hello_bytes);
    ASSERT_TRUE(right_reads(first).value().has_value());
    EXPECT_THAT(right_reads(first).status().message(), HasSubstr("expected frame 1, received frame 0"));

    auto [a, b] = pair();
    right_.emplace(std::move(b), session, 1024);
    left_.emplace(std::move(a), session, 1024);
    secure();
    EXPECT_THAT(right_reads(raw_frame(to_left, session, 0, FrameType::up, hello_bytes)).status().message(),
                HasSubstr("not signed with this job's secret"));

    auto [c, d] = pair();
    right_.emplace(std::move(d), session, 1024);
    left_.emplace(std::move(c), session, 1024);
    secure();
    EXPECT_THAT(right_reads(raw_frame(to_right, session + 1, 0, FrameType::up, hello_bytes)).status().message(),
                HasSubstr("session 4, not to 3"));
}

TEST_F(ChannelTest, AcceptsOnlyHandshakeFramesBeforeItIsSecure) {
    EXPECT_TRUE(right_reads(raw_frame({}, session, 0, FrameType::hello, hello_bytes)).value().has_value());
    EXPECT_THAT(right_reads(raw_frame({}, session, 1, FrameType::abort, {})).status().message(),
                HasSubstr("before the handshake was complete"));
}

TEST_F(ChannelTest, RejectsLengthsAboveTheLimitOfTheChannel) {
    auto [a, b] = pair();
    left_.emplace(std::move(a), session, 100);
    right_.emplace(std::move(b), session, 100);
    secure();
    const Buffer frame = raw_frame(to_right, session, 0, FrameType::up, Buffer(101));
    EXPECT_THAT(right_reads(std::span(frame).first(FrameHeader::bytes)).status().message(),
                HasSubstr("101 bytes exceeds the limit of 100 bytes"));
}

TEST_F(ChannelTest, DeliversQueuedFramesBeforeTheEnd) {
    secure();
    left_->queue(FrameType::bye, {});
    left_->finish();
    left_.reset();
    ASSERT_TRUE(next_right().value().has_value());
    EXPECT_EQ(right_->fill(), Channel::Input::end);
    right_->queue(FrameType::bye, {});
    right_->flush();
    EXPECT_TRUE(right_->send_closed());
    EXPECT_EQ(right_->queued(), 0U) << "what nobody takes is not kept";
}

}  // namespace

}  // namespace npushmem::rendezvous
