#include "core/ops/block_copy.hpp"

#include <gtest/gtest.h>

#include <algorithm>
#include <cstdint>
#include <vector>

namespace npushmem {
namespace {

TEST(BlockCopy, SuitsItsRangeOnly) {
    for (const std::size_t bytes : {std::size_t{1024}, std::size_t{1025}, std::size_t{16384}})
        EXPECT_TRUE(suits_block_copy(bytes)) << bytes;
    for (const std::size_t bytes : {std::size_t{0}, std::size_t{1}, std::size_t{1023}, std::size_t{16385}, SIZE_MAX})
        EXPECT_FALSE(suits_block_copy(bytes)) << bytes;
}

// Every byte of the block and none beside it, at every alignment of both sides to a cache line that matters.
TEST(BlockCopy, CopiesTheBlockAndNothingElse) {
    const BlockCopy copy = choose_block_copy();
    constexpr std::size_t margin = 64;
    std::vector<std::uint8_t> source(max_block_copy + 2 * margin);
    for (std::size_t i = 0; i < source.size(); ++i) source[i] = static_cast<std::uint8_t>(i * 131 + i / 251);
    for (const std::size_t bytes : {1024, 1025, 1087, 1279, 1280, 1281, 2048, 3000, 4096, 8191, 16383, 16384})
        for (const std::size_t from : {0, 1, 8, 63})
            for (const std::size_t to : {0, 1, 32, 63}) {
                std::vector<std::uint8_t> target(max_block_copy + 2 * margin, 0xee);
                copy(target.data() + to, source.data() + from, bytes);
                std::vector<std::uint8_t> expected(target.size(), 0xee);
                std::copy_n(source.begin() + static_cast<std::ptrdiff_t>(from), bytes,
                            expected.begin() + static_cast<std::ptrdiff_t>(to));
                ASSERT_EQ(target, expected) << bytes << " bytes from " << from << " to " << to;
            }
}

}  // namespace
}  // namespace npushmem
