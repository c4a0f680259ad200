#include "bootstrap/rendezvous/frame.hpp"

#include <gmock/gmock.h>

#include <algorithm>

#include "bootstrap/rendezvous/limits.hpp"

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

TEST(FrameHeader, RefusesStrangeBytes) {
    EXPECT_EQ(FrameHeader::parse(Raw{}).status().code(), Code::protocol);
    Raw raw = raw_of(sample);
    raw[6] = std::byte{0};
    EXPECT_THAT(FrameHeader::parse(raw).status().message(), HasSubstr("unknown type 0"));
    raw[6] = std::byte{11};
    EXPECT_THAT(FrameHeader::parse(raw).status().message(), HasSubstr("unknown type 11"));
}

TEST(FrameHeader, TellsAnotherVersionFromGarbage) {
    Raw raw = raw_of(sample);
    raw[4] = std::byte{protocol_version + 1};
    const Status refused = FrameHeader::parse(raw).status();
    EXPECT_EQ(refused.code(), Code::unsupported);
    EXPECT_THAT(refused.message(), HasSubstr("speaks version 2"));
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

}  // namespace
}  // namespace npushmem::rendezvous
