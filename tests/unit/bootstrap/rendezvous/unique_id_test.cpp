// SPDX-License-Identifier: BSD-3-Clause
#include "bootstrap/rendezvous/unique_id.hpp"

#include <fmt/format.h>
#include <gmock/gmock.h>

namespace npushmem::rendezvous {
namespace {

using ::testing::HasSubstr;

const Address service = Address::parse("10.1.2.3", 4000).value();

std::string hex(const UniqueIdBytes& id) {
    std::string digits;
    for (const std::byte each : id) digits += fmt::format("{:02x}", std::to_integer<unsigned>(each));
    return digits;
}

void expect_equal(const UniqueId& a, const UniqueId& b) {
    EXPECT_EQ(a.service, b.service);
    EXPECT_EQ(a.credentials.job, b.credentials.job);
    EXPECT_EQ(a.credentials.secret, b.credentials.secret);
}

TEST(UniqueId, IsDecodedFromBytesAndHex) {
    const UniqueId id = UniqueId::make(service).value();
    expect_equal(UniqueId::decode(id.encode()).value(), id);
    expect_equal(UniqueId::decode_hex(hex(id.encode())).value(), id);
}

TEST(UniqueId, IsUnique) {
    const UniqueId a = UniqueId::make(service).value();
    const UniqueId b = UniqueId::make(service).value();
    EXPECT_NE(a.credentials.secret, b.credentials.secret);
    EXPECT_NE(a.credentials.job, b.credentials.job);
}

TEST(UniqueId, RejectsDamageOfAnyByte) {
    const UniqueIdBytes id = UniqueId::make(service).value().encode();
    for (std::size_t i = 0; i < id.size(); ++i) {
        UniqueIdBytes damaged = id;
        damaged[i] ^= std::byte{1};
        EXPECT_EQ(UniqueId::decode(damaged).status().code(), Code::argument) << "byte " << i;
    }
}

TEST(UniqueId, ReportsWhyAnIdIsRejected) {
    UniqueIdBytes id = UniqueId::make(service).value().encode();
    EXPECT_THAT(UniqueId::decode(UniqueIdBytes{}).status().message(), HasSubstr("does not begin with the magic bytes"));
    id[8] = std::byte{9};
    EXPECT_THAT(UniqueId::decode(id).status().message(), HasSubstr("its format is 9"));
    EXPECT_THAT(UniqueId::decode_hex("abc").status().message(), HasSubstr("3 characters instead of 256"));
    std::string digits = hex(id);
    digits[31] = 'g';
    EXPECT_THAT(UniqueId::decode_hex(digits).status().message(), HasSubstr("character 31 is not a hex digit"));
}

TEST(UniqueId, OfASessionDependsOnSessionAndPassword) {
    const UniqueId id = UniqueId::from_session(service, "host:1", "");
    expect_equal(UniqueId::from_session(service, "host:1", ""), id);
    EXPECT_NE(UniqueId::from_session(service, "host:1", "x").credentials.secret, id.credentials.secret);
    EXPECT_EQ(UniqueId::from_session(service, "host:1", "x").credentials.job, id.credentials.job);
    EXPECT_NE(UniqueId::from_session(service, "host:2", "").credentials.job, id.credentials.job);
}

}  // namespace
}  // namespace npushmem::rendezvous
