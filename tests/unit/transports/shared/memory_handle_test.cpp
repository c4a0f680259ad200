#include "transports/shared/memory_handle.hpp"

#include <gmock/gmock.h>

#include <cstddef>
#include <cstring>

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

TEST(MemoryHandle, SurvivesTheWay) {
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

TEST(MemoryHandle, AnotherVersionSaysSo) {
    Bytes newer = encode(example());
    newer[8] = std::byte{9};
    EXPECT_THAT(decode(newer).status().message(), ::testing::HasSubstr("version 9"));
}

TEST(MemoryHandle, AnEndBeyondAllNumbersIsRefused) {
    MemoryHandle endless = example();
    endless.bytes = ~std::uint64_t{0};
    EXPECT_EQ(decode(encode(endless)).status().code(), Code::protocol);
}

}  // namespace
}  // namespace npushmem::shared_memory
