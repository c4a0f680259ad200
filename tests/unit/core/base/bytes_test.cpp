// SPDX-License-Identifier: BSD-3-Clause
#include "core/base/bytes.hpp"

#include <gtest/gtest.h>

namespace npushmem {

namespace {

TEST(ByteReader, ReadsTheValuesThatTheWriterWrote) {
    const Buffer bytes = ByteWriter()
                             .integer(std::uint16_t{0xabcd})
                             .integer(std::int32_t{-5})
                             .integer(std::uint64_t{1} << 63)
                             .text("name", 16)
                             .take();
    ByteReader in(bytes);
    EXPECT_EQ(in.integer<std::uint16_t>(), 0xabcd);
    EXPECT_EQ(in.integer<std::int32_t>(), -5);
    EXPECT_EQ(in.integer<std::uint64_t>(), std::uint64_t{1} << 63);
    EXPECT_FALSE(in.complete());
    EXPECT_EQ(in.text(16), "name");
    EXPECT_TRUE(in.complete());
}

TEST(ByteReader, WritesLittleEndian) {
    const Buffer bytes = ByteWriter().integer(std::uint32_t{0x01020304}).take();
    EXPECT_EQ(bytes, (Buffer{std::byte{4}, std::byte{3}, std::byte{2}, std::byte{1}}));
}

TEST(ByteReader, StaysFailedAfterAMissingValue) {
    const Buffer bytes = ByteWriter().integer(std::uint16_t{7}).take();
    ByteReader in(bytes);
    EXPECT_EQ(in.integer<std::uint32_t>(), 0U);
    EXPECT_FALSE(in.ok());
    EXPECT_EQ(in.integer<std::uint16_t>(), 0U) << "nothing is read after the first failure";
    EXPECT_FALSE(in.ok());
}

TEST(ByteReader, RejectsTextAboveItsLimit) {
    const Buffer bytes = ByteWriter().text("too long", 100).take();
    ByteReader in(bytes);
    EXPECT_EQ(in.text(3), "too");
    EXPECT_FALSE(in.ok());
}

TEST(ByteReader, RejectsTextLongerThanTheRemainingBytes) {
    const Buffer bytes = ByteWriter().integer(std::uint16_t{50}).integer(std::uint8_t{'x'}).take();
    ByteReader in(bytes);
    EXPECT_EQ(in.text(100), "");
    EXPECT_FALSE(in.ok());
}

TEST(ByteWriter, CutsTextAtItsLimit) {
    const Buffer bytes = ByteWriter().text("hello", 2).take();
    ByteReader in(bytes);
    EXPECT_EQ(in.text(2), "he");
    EXPECT_TRUE(in.complete());
}

TEST(ByteReader, CountsOnlyElementsThatFit) {
    const Buffer bytes = ByteWriter().integer(std::uint32_t{2}).integer(std::uint16_t{7}).take();
    EXPECT_EQ(ByteReader(bytes).count(1), 2U);
    ByteReader in(bytes);
    EXPECT_EQ(in.count(2), 0U);
    EXPECT_FALSE(in.ok());
}

TEST(ByteReader, FailsAfterItsCallerHasRejectedAValue) {
    const Buffer bytes = ByteWriter().integer(std::uint16_t{7}).take();
    ByteReader in(bytes);
    in.fail();
    EXPECT_EQ(in.integer<std::uint16_t>(), 0U);
    EXPECT_FALSE(in.complete());
}

}  // namespace

}  // namespace npushmem
