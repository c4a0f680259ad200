// SPDX-License-Identifier: BSD-3-Clause
#include "transports/network/address_codec.hpp"

#include <gtest/gtest.h>

namespace npushmem::network {
namespace {

TEST(Contact, AnAddressSurvivesEncoding) {
    const EndpointAddress address{"libfabric tcp", Bytes(16, std::byte{5}), SipKey{std::byte{7}, std::byte{8}}};
    const auto decoded = decode_address(encode(address));
    ASSERT_TRUE(decoded.ok()) << decoded.status().message();
    EXPECT_EQ(decoded.value().protocol, address.protocol);
    EXPECT_EQ(decoded.value().wire, address.wire);
    EXPECT_EQ(decoded.value().key, address.key);
}

TEST(Contact, AHandleSurvivesEncoding) {
    const NetworkHandle handle{3, 0x7000, 4096, Bytes(8, std::byte{9})};
    const auto decoded = decode_handle(encode(handle));
    ASSERT_TRUE(decoded.ok()) << decoded.status().message();
    EXPECT_EQ(decoded.value().region, 3U);
    EXPECT_EQ(decoded.value().base, 0x7000U);
    EXPECT_EQ(decoded.value().bytes, 4096U);
    EXPECT_EQ(decoded.value().key, handle.key);
}

TEST(Contact, TruncatedBytesAreRefused) {
    const Bytes address = encode(EndpointAddress{"protocol", Bytes(0)});
    for (std::size_t bytes = 0; bytes < address.size(); ++bytes)
        EXPECT_FALSE(decode_address(std::span(address).first(bytes)).ok()) << bytes;
    const Bytes handle = encode(NetworkHandle{1, 2, 3, Bytes(8)});
    for (std::size_t bytes = 0; bytes < handle.size(); ++bytes)
        EXPECT_FALSE(decode_handle(std::span(handle).first(bytes)).ok()) << bytes;
}

// A network library may abort on what was changed.
TEST(Contact, ChangedBytesAreRefused) {
    const Bytes address = encode(EndpointAddress{"protocol", Bytes(4)});
    for (std::size_t at = 0; at < address.size(); ++at) {
        Bytes changed = address;
        changed[at] ^= std::byte{0x40};
        EXPECT_FALSE(decode_address(changed).ok()) << at;
    }
    const Bytes handle = encode(NetworkHandle{1, 2, 3, Bytes(8)});
    for (std::size_t at = 0; at < handle.size(); ++at) {
        Bytes changed = handle;
        changed[at] ^= std::byte{0x01};
        EXPECT_FALSE(decode_handle(changed).ok()) << at;
    }
}

TEST(Contact, AnotherVersionIsNamed) {
    Bytes address = encode(EndpointAddress{"protocol", Bytes(4)});
    address[4] = std::byte{9};
    EXPECT_NE(decode_address(address).status().message().find("version 9"), std::string::npos);
}

}  // namespace
}  // namespace npushmem::network
