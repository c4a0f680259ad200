// SPDX-License-Identifier: BSD-3-Clause
#include "core/base/sip_hash.hpp"

#include <fmt/format.h>
#include <gtest/gtest.h>

#include <string>
#include <vector>

namespace npushmem {
namespace {

// Bytes 0, 1, 2, ...
std::vector<std::byte> counting(std::size_t length) {
    std::vector<std::byte> bytes(length);
    for (std::size_t i = 0; i < length; ++i) bytes[i] = static_cast<std::byte>(i);
    return bytes;
}

SipKey counting_key() {
    SipKey key{};
    for (std::size_t i = 0; i < key.size(); ++i) key[i] = static_cast<std::byte>(i);
    return key;
}

std::string hex(const SipTag& tag) {
    std::string text;
    for (const std::byte each : tag) text += fmt::format("{:02x}", std::to_integer<unsigned>(each));
    return text;
}

std::string hash_of(std::size_t length) {
    SipHash128 hash(counting_key());
    hash.update(counting(length));
    return hex(hash.finish());
}

// The hash's published test vectors: key 00..0f, message 00, 01, ... of the given length.
TEST(SipHash128, MatchesPublishedVectors) {
    EXPECT_EQ(hash_of(0), "a3817f04ba25a8e66df67214c7550293");
    EXPECT_EQ(hash_of(1), "da87c1d86b99af44347659119b22fc45");
    EXPECT_EQ(hash_of(7), "a1f1ebbed8dbc153c0b84aa61ff08239");
    EXPECT_EQ(hash_of(8), "3b62a9ba6258f5610f83e264f31497b4");
    EXPECT_EQ(hash_of(9), "264499060ad9baabc47f8b02bb6d71ed");
    EXPECT_EQ(hash_of(15), "5493e99933b0a8117e08ec0f97cfc3d9");
    EXPECT_EQ(hash_of(16), "6ee2a4ca67b054bbfd3315bf85230577");
    EXPECT_EQ(hash_of(63), "5150d1772f50834a503e069a973fbd7c");
}

TEST(SipHash128, DoesNotDependOnHowTheMessageIsCut) {
    const auto message = counting(40);
    const std::span<const std::byte> whole(message);
    for (std::size_t first = 0; first <= whole.size(); ++first) {
        for (std::size_t second = first; second <= whole.size(); ++second) {
            SipHash128 hash(counting_key());
            hash.update(whole.first(first));
            hash.update(whole.subspan(first, second - first));
            hash.update(whole.subspan(second));
            ASSERT_EQ(hex(hash.finish()), hash_of(40)) << first << " " << second;
        }
    }
}

TEST(SipHash128, EveryKeyBitMatters) {
    for (std::size_t bit = 0; bit < 128; ++bit) {
        SipKey key = counting_key();
        key[bit / 8] ^= static_cast<std::byte>(1U << (bit % 8));
        SipHash128 hash(key);
        EXPECT_NE(hex(hash.finish()), hash_of(0)) << bit;
    }
}

TEST(EqualInConstantTime, DetectsEveryDifference) {
    const SipTag a = counting_key();
    EXPECT_TRUE(equal_in_constant_time(a, a));
    for (std::size_t i = 0; i < a.size(); ++i) {
        SipTag b = a;
        b[i] ^= std::byte{0x80};
        EXPECT_FALSE(equal_in_constant_time(a, b)) << i;
    }
}

}  // namespace
}  // namespace npushmem
