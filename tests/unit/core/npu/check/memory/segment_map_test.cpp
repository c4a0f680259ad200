// SPDX-License-Identifier: BSD-3-Clause
// The map of address ranges beside an array with one value for each address.
#include "core/npu/check/memory/segment_map.hpp"

#include <gtest/gtest.h>

#include <array>
#include <cstdint>
#include <random>

namespace npushmem::npu::check {
namespace {

constexpr std::size_t addresses = 40;

// 0: no segment covers the address.
using Values = std::array<int, addresses>;

Values values_of(const SegmentMap<int>& map) {
    Values values{};
    std::uintptr_t last = 0;
    map.visit(0, addresses, [&](std::uintptr_t begin, std::uintptr_t end, int value) {
        EXPECT_LE(last, begin);
        EXPECT_LT(begin, end);
        last = end;
        for (std::uintptr_t at = begin; at < end; ++at) values[at] = value;
    });
    return values;
}

// Assigns and updates drawn ranges. An update multiplies by 3 and adds 1, so that a new segment has 1.
void compare_drawn(std::uint64_t seed) {
    std::mt19937_64 random(seed);
    SegmentMap<int> map;
    Values expected{};
    for (int i = 0; i < 30; ++i) {
        const std::uintptr_t begin = random() % addresses;
        const std::uintptr_t end = begin + random() % (addresses - begin + 1);
        if (random() % 2 == 0) {
            map.assign(begin, end, i + 1);
            for (std::uintptr_t at = begin; at < end; ++at) expected[at] = i + 1;
        } else {
            std::uintptr_t next = begin;
            map.update(begin, end, [&](std::uintptr_t first, std::uintptr_t last, int& value) {
                EXPECT_EQ(first, next);
                next = last;
                value = (value * 3 + 1) % 1000;
            });
            EXPECT_EQ(next, end);
            for (std::uintptr_t at = begin; at < end; ++at) expected[at] = (expected[at] * 3 + 1) % 1000;
        }
        ASSERT_EQ(values_of(map), expected)
            << "seed " << seed << ", operation " << i << ", [" << begin << ", " << end << ")";
    }
}

TEST(SegmentMap, AssignsAndUpdatesAnyRanges) {
    for (std::uint64_t seed = 1; seed <= 500; ++seed) compare_drawn(seed);
}

TEST(SegmentMap, ARangeThatRepeatsKeepsOneSegment) {
    SegmentMap<int> map;
    for (int value = 1; value <= 3; ++value) map.assign(8, 16, value);
    map.update(8, 16, [](std::uintptr_t, std::uintptr_t, int& value) { ++value; });
    EXPECT_EQ(map.size(), 1U);
    EXPECT_EQ(values_of(map)[8], 4);
}

}  // namespace
}  // namespace npushmem::npu::check
