// SPDX-License-Identifier: BSD-3-Clause
#include <gtest/gtest.h>

#include <algorithm>
#include <cstdint>
#include <cstring>
#include <vector>

#include "core/moe/common/nontemporal_copy.hpp"

namespace npushmem::moe {

namespace {

TEST(NontemporalCopy, EveryLengthAndAlignmentCopiesExactlyThoseBytes) {
    std::vector<std::byte> source(600);
    for (std::size_t i = 0; i < source.size(); ++i) source[i] = static_cast<std::byte>(i * 7 + 1);
    for (std::size_t offset = 0; offset < 70; offset += 3) {
        for (std::size_t bytes = 0; bytes < 400; ++bytes) {
            std::vector<std::byte> target(600, std::byte{0xEE});
            copy_nontemporal(target.data() + offset, source.data() + offset / 2, bytes);
            nontemporal_fence();
            for (std::size_t i = 0; i < target.size(); ++i) {
                const bool inside = i >= offset && i < offset + bytes;
                ASSERT_EQ(target[i], inside ? source[offset / 2 + i - offset] : std::byte{0xEE})
                    << offset << ' ' << bytes;
            }
        }
    }
}

}  // namespace

namespace {

constexpr std::size_t lines_of_page = 4096 / store_line;

// Copies to the first line boundary in a longer target, and compares the whole target.
void expect_exact(StoreWidth width, std::size_t lines, std::size_t source_offset) {
    std::vector<std::byte> source(lines * store_line + source_offset);
    for (std::size_t i = 0; i < source.size(); ++i) source[i] = static_cast<std::byte>(i * 7 + i / 251);
    std::vector<std::byte> target((lines + 3) * store_line, std::byte{0xEE});
    const std::size_t before = store_line - reinterpret_cast<std::uintptr_t>(target.data()) % store_line;
    nontemporal_lines(target.data() + before, source.data() + source_offset, lines, width);
    nontemporal_fence();
    std::vector<std::byte> expected(target.size(), std::byte{0xEE});
    std::copy(source.begin() + static_cast<std::ptrdiff_t>(source_offset), source.end(),
              expected.begin() + static_cast<std::ptrdiff_t>(before));
    ASSERT_TRUE(target == expected) << lines << " lines, source at " << source_offset;
}

// The lengths produce every combination of blocks of four pages, of two pages, and single lines.
TEST(NontemporalLines, EveryWidthCopiesExactlyTheLinesOfEveryMixOfBlocks) {
    for (const auto width : {StoreWidth::bits_128, StoreWidth::bits_256, StoreWidth::bits_512}) {
        if (width > widest_store()) continue;
        for (const std::size_t pages : {0, 1, 2, 3, 4, 6, 7, 8, 15}) {
            for (const std::size_t more : {0, 1, 2, 63}) {
                expect_exact(width, pages * lines_of_page + more, 0);
                expect_exact(width, pages * lines_of_page + more, 13);
            }
        }
    }
}

}  // namespace

}  // namespace npushmem::moe
