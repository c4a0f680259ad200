// SPDX-License-Identifier: BSD-3-Clause
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <unistd.h>

#include <cstddef>
#include <cstring>

#include "transports/shared/memory_handle.hpp"

namespace npushmem::shared_memory {
namespace {

MemoryHandle example() {
    MemoryHandle out{};
    out.process = 77;
    out.descriptor = 5;
    out.start_time = 123456;
    out.device = 11;
    out.inode = 22;
    out.offset = 4096;
    out.bytes = 8192;
    out.host = {1, 2, 3, 4};
    return out;
}

TEST(MemoryHandle, LayoutIsLocked) {
    EXPECT_EQ(offsetof(MemoryHandle, process), 16U);
    EXPECT_EQ(offsetof(MemoryHandle, start_time), 24U);
    EXPECT_EQ(offsetof(MemoryHandle, device), 32U);
    EXPECT_EQ(offsetof(MemoryHandle, offset), 48U);
    EXPECT_EQ(offsetof(MemoryHandle, host), 64U);
}

TEST(MemoryHandle, SurvivesEncoding) {
    const auto back = decode(encode(example()));
    ASSERT_TRUE(back.ok());
    EXPECT_EQ(back.value().process, 77);
    EXPECT_EQ(back.value().offset, 4096U);
    EXPECT_EQ(back.value().host.emulated, 3);
}

TEST(MemoryHandle, EveryDamagedLeadingByteIsNoticed) {
    const Bytes sound = encode(example());
    for (std::size_t i = 0; i < offsetof(MemoryHandle, process); ++i) {
        Bytes damaged = sound;
        damaged[i] ^= std::byte{1};
        EXPECT_EQ(decode(damaged).status().code(), Code::protocol) << "byte " << i;
    }
    for (std::size_t length = 0; length < sound.size(); ++length)
        EXPECT_FALSE(decode(std::span(sound).first(length)).ok()) << length;
}

TEST(MemoryHandle, AnotherVersionIsReported) {
    Bytes newer = encode(example());
    newer[8] = std::byte{9};
    EXPECT_THAT(decode(newer).status().message(), ::testing::HasSubstr("version 9"));
}

TEST(MemoryHandle, AnOverflowingRangeIsRejected) {
    MemoryHandle endless = example();
    endless.bytes = ~std::uint64_t{0};
    EXPECT_EQ(decode(encode(endless)).status().code(), Code::protocol);
}

}  // namespace

namespace {

using ::testing::HasSubstr;

constexpr npushmem_host_id here{1, 2, -1, 1000};

npushmem_host_id emulated(int host) { return {1, 2 + static_cast<std::uint64_t>(host), host, 1000}; }

TEST(WhatSeparates, IsEmptyOnTheSameHost) {
    EXPECT_EQ(why_not_shareable(here, here), "");
    EXPECT_EQ(why_not_shareable(emulated(1), emulated(1)), "");
}

TEST(WhatSeparates, DescribesMachineNamespaceAndUser) {
    EXPECT_EQ(why_not_shareable(here, {9, 2, -1, 1000}), "another machine");
    EXPECT_THAT(why_not_shareable(here, {1, 9, -1, 1000}), HasSubstr("namespace"));
    EXPECT_THAT(why_not_shareable(here, {1, 2, -1, 5}), HasSubstr("another user (uid 5, this PE has uid 1000)"));
}

TEST(WhatSeparates, EmulatedHostsAreNamedBeforeTheirNamespaces) {
    EXPECT_EQ(why_not_shareable(emulated(0), emulated(1)),
              "on emulated host 1, this PE is on emulated host 0: memory of different emulated hosts cannot be mapped");
    EXPECT_THAT(why_not_shareable(here, emulated(1)), HasSubstr("this PE is on no emulated host"));
}

}  // namespace

namespace {

TEST(StartTime, OfThisProcessAndOfNone) {
    const auto own = start_time_of(::getpid());
    ASSERT_TRUE(own.ok());
    EXPECT_GT(own.value(), 0U);
    EXPECT_EQ(start_time_of(::getpid()).value(), own.value());
    EXPECT_EQ(start_time_of(-5).status().code(), Code::peer_dead);
}

}  // namespace

}  // namespace npushmem::shared_memory
