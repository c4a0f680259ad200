// SPDX-License-Identifier: BSD-3-Clause
#include "transports/verbs/key_exchange.hpp"

#include <gtest/gtest.h>

#include <limits>

namespace npushmem::verbs {
namespace {

bool is_accepted(std::uint64_t bytes, std::uint64_t chunk_bytes) {
    return region_info_from(bytes_from(RegionInfo{1, bytes, chunk_bytes})).has_value();
}

TEST(RegionInfo, DescribesMemoryInChunks) {
    EXPECT_TRUE(is_accepted(1, 4096));
    EXPECT_TRUE(is_accepted(std::uint64_t{1} << 40, std::uint64_t{4} << 20));
    EXPECT_FALSE(is_accepted(0, 4096));
    EXPECT_FALSE(is_accepted(4096, 0));
    EXPECT_FALSE(region_info_from(Bytes(sizeof(RegionInfo) - 1)).has_value());
}

// The table of keys would have no element, although every offset is within the memory.
TEST(RegionInfo, IsRejectedWhenItsNumberOfChunksOverflows) {
    constexpr std::uint64_t largest = std::numeric_limits<std::uint64_t>::max();
    EXPECT_FALSE(is_accepted(largest, 4096));
    EXPECT_FALSE(is_accepted(largest, largest));
}

TEST(RegionInfo, IsRejectedWhenTheTableOfItsKeysWouldExhaustMemory) {
    EXPECT_FALSE(is_accepted(std::uint64_t{1} << 50, 1));
}

}  // namespace
}  // namespace npushmem::verbs
