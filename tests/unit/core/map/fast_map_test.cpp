// SPDX-License-Identifier: BSD-3-Clause
#include <gtest/gtest.h>

#include <algorithm>
#include <cstdint>
#include <limits>
#include <vector>

#include "core/map/fast_map.hpp"

namespace npushmem {

namespace {

std::vector<std::uint8_t> sample_bytes(std::size_t count) {
    std::vector<std::uint8_t> bytes(count);
    for (std::size_t i = 0; i < count; ++i) bytes[i] = static_cast<std::uint8_t>(i * 131 + i / 251);
    return bytes;
}

TEST(BlockCopy, IsSelectedForItsSizesOnly) {
    for (const std::size_t bytes : {1024, 1025, 16384, 1 << 20, 3 << 19, 2 << 20})
        EXPECT_TRUE(suits_block_copy(bytes)) << bytes;
    for (const std::size_t bytes : {std::size_t{0}, std::size_t{1}, std::size_t{1023}, std::size_t{16385},
                                    (std::size_t{1} << 20) - 1, (std::size_t{2} << 20) + 1, SIZE_MAX})
        EXPECT_FALSE(suits_block_copy(bytes)) << bytes;
}

// Copies every byte of the block and none outside it, at every relevant alignment of both sides.
TEST(BlockCopy, CopiesTheBlockAndNothingElse) {
    const BlockCopy copy = choose_block_copy();
    constexpr std::size_t margin = 64;
    const std::vector<std::uint8_t> source = sample_bytes(max_string_copy + 2 * margin);
    for (const std::size_t bytes :
         {1024, 1025, 1087, 1279, 1280, 1281, 2048, 3000, 4096, 8191, 16383, 16384, 1 << 20, (2 << 20) - 1, 2 << 20})
        for (const std::size_t from : {0, 1, 8, 63})
            for (const std::size_t to : {0, 1, 32, 63}) {
                std::vector<std::uint8_t> target(bytes + 2 * margin, 0xee);
                copy(target.data() + to, source.data() + from, bytes);
                std::vector<std::uint8_t> expected(target.size(), 0xee);
                std::copy_n(source.begin() + static_cast<std::ptrdiff_t>(from), bytes,
                            expected.begin() + static_cast<std::ptrdiff_t>(to));
                ASSERT_EQ(target, expected) << bytes << " bytes from " << from << " to " << to;
            }
}

TEST(CopyLarge, CopiesTheBlockAndNothingElse) {
    constexpr std::size_t margin = 64;
    for (const std::size_t bytes : {min_string_copy, max_string_copy - 1, max_string_copy, max_string_copy + 1}) {
        const std::vector<std::uint8_t> source = sample_bytes(bytes);
        std::vector<std::uint8_t> target(bytes + 2 * margin, 0xee);
        copy_large(target.data() + margin, source.data(), bytes);
        std::vector<std::uint8_t> expected(target.size(), 0xee);
        std::ranges::copy(source, expected.begin() + margin);
        ASSERT_EQ(target, expected) << bytes;
    }
}

}  // namespace

namespace {

// PEs 2, 3 and 4 are mapped, PE 3 is the own one; slices of 64 bytes lie 128 apart.
class FastMapTest : public ::testing::Test {
protected:
    FastMapTest() {
        map.heap = reinterpret_cast<std::uintptr_t>(own());
        map.heap_bytes = 64;
        map.peers = memory;
        map.stride = 128;
        map.first_pe = 2;
        map.mapped_pes = 3;
    }
    std::byte* own() { return memory + 128; }

    alignas(64) std::byte memory[384];
    FastMap map;
};

TEST_F(FastMapTest, ComputesThePeersCopy) {
    EXPECT_EQ(map.address(own() + 8, 2), memory + 8);
    EXPECT_EQ(map.address(own() + 8, 3), own() + 8);
    EXPECT_EQ(map.address(own(), 64, 4), memory + 256);
}

TEST_F(FastMapTest, RejectsUnmappedPes) {
    for (const int pe : {1, 5, -1, std::numeric_limits<int>::max(), std::numeric_limits<int>::min()}) {
        EXPECT_EQ(map.address(own(), pe), nullptr) << pe;
        EXPECT_EQ(map.address(own(), 8, pe), nullptr) << pe;
    }
}

TEST_F(FastMapTest, RejectsRangesNotEntirelyInTheHeap) {
    EXPECT_EQ(map.address(own() - 1, 2), nullptr);
    EXPECT_EQ(map.address(own() + 64, 2), nullptr);
    EXPECT_EQ(map.address(nullptr, 2), nullptr);
    EXPECT_NE(map.address(own() + 56, 8, 2), nullptr);
    EXPECT_EQ(map.address(own() + 57, 8, 2), nullptr) << "the last bytes lie outside";
    EXPECT_EQ(map.address(own(), 65, 2), nullptr);
    EXPECT_EQ(map.address(own() + 8, std::numeric_limits<std::uint64_t>::max(), 2), nullptr) << "no wrap";
    EXPECT_EQ(map.address(own(), 0, 2), nullptr);
}

// The executable's variables, 16 bytes somewhere else, lie at offset 64 of each slice.
class FastMapOfVariables : public FastMapTest {
protected:
    FastMapOfVariables() {
        map.statics = reinterpret_cast<std::uintptr_t>(variables);
        map.statics_bytes = 16;
        map.statics_offset = 64;
    }
    alignas(16) std::byte variables[32];
};

TEST_F(FastMapOfVariables, ComputesThePeersCopy) {
    EXPECT_EQ(map.address(variables + 5, 2), memory + 64 + 5);
    EXPECT_EQ(map.address(variables, 16, 4), memory + 256 + 64);
    EXPECT_EQ(map.address(own() + 8, 8, 4), memory + 256 + 8) << "the heap stays where it was";
}

TEST_F(FastMapOfVariables, RejectsRangesNotEntirelyInTheVariables) {
    EXPECT_EQ(map.address(variables - 1, 2), nullptr);
    EXPECT_EQ(map.address(variables + 16, 2), nullptr);
    EXPECT_NE(map.address(variables + 8, 8, 2), nullptr);
    EXPECT_EQ(map.address(variables + 9, 8, 2), nullptr);
    EXPECT_EQ(map.address(variables, 17, 2), nullptr);
    EXPECT_EQ(map.address(variables, 0, 2), nullptr);
    EXPECT_EQ(map.address(variables + 1, std::numeric_limits<std::uint64_t>::max(), 2), nullptr) << "no wrap";
    EXPECT_EQ(map.address(variables, 1), nullptr) << "a PE that is not mapped";
    EXPECT_EQ(map.address(variables, 8, 5), nullptr);
}

TEST(FastMap, AnEmptyMapRejectsEveryAddress) {
    const FastMap none;
    int value = 0;
    EXPECT_EQ(none.address(&value, 0), nullptr);
    EXPECT_EQ(none.address(&value, sizeof value, 0), nullptr);
    EXPECT_EQ(none.address(nullptr, sizeof value, 0), nullptr);
}

TEST_F(FastMapTest, AccessGivesTheAddressAndTheSlice) {
    map.statics = 0x1000;
    map.statics_bytes = 16;
    map.statics_offset = 48;
    const auto* const variable = reinterpret_cast<const void*>(std::uintptr_t{0x1008});
    for (const void* object : {static_cast<const void*>(own()), static_cast<const void*>(own() + 56), variable})
        for (int pe = 2; pe <= 4; ++pe) {
            const bool done = map.access(
                object, 8, pe,
                [&](void* target, std::byte* slice) {
                    EXPECT_EQ(target, map.address(object, 8, pe));
                    EXPECT_EQ(slice, memory + 128 * (pe - 2));
                    EXPECT_EQ(slice, map.slice(pe));
                    return true;
                },
                [] { return false; });
            EXPECT_TRUE(done) << pe;
        }
}

TEST_F(FastMapTest, AccessLeavesTheRestToTheSlowPath) {
    const auto refused = [&](const void* object, std::uint64_t bytes, int pe) {
        return map.access(
            object, bytes, pe, [](void*, std::byte*) { return false; }, [] { return true; });
    };
    EXPECT_TRUE(refused(own(), 8, 1));
    EXPECT_TRUE(refused(own(), 8, 5));
    EXPECT_TRUE(refused(own() + 57, 8, 3));
    EXPECT_TRUE(refused(own() - 1, 8, 3));
    EXPECT_TRUE(refused(own(), 0, 3));
    map.mapped_pes = 0;
    EXPECT_TRUE(refused(own(), 8, 3));
}

}  // namespace

}  // namespace npushmem
