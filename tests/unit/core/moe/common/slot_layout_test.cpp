// SPDX-License-Identifier: BSD-3-Clause
#include "core/moe/common/slot_layout.hpp"

#include <gtest/gtest.h>

namespace npushmem::moe {
namespace {

TEST(SlotLayout, RegionsFollowEachOtherWithoutOverlap) {
    for (const std::uint64_t row : {1U, 14U, 31U, 32U, 33U, 500U, 512U, 2000U, 14336U}) {
        const SlotLayout layout(3, Rows{7}, Bytes{row});
        EXPECT_EQ(layout.signal(1).value(), 128U);
        EXPECT_GE(layout.buffer(0), layout.signal(2) + Bytes{128});
        EXPECT_GE(layout.canary(0), layout.slot(0, 6) + layout.slot_stride());
        EXPECT_EQ(layout.buffer(1), layout.canary(0) + Bytes{128});
        EXPECT_EQ(layout.total(), layout.canary(1) + Bytes{128});
        EXPECT_EQ(layout.slot(2, 3), layout.slot(0, 3));
        EXPECT_GE(layout.slot_stride().value(), row);
        EXPECT_EQ(layout.slot_stride().value() % 32, 0U);
        EXPECT_EQ(layout.buffer(0).value() % 128, 0U);
        EXPECT_EQ(layout.buffer(1).value() % 128, 0U);
    }
}

TEST(SlotLayout, SizesBeyondFourGigabytesDoNotWrap) {
    const SlotLayout layout(8, Rows{std::uint64_t{1} << 20}, Bytes{14336});
    EXPECT_EQ(layout.slot(0, (1U << 20) - 1).value(), 8 * 128 + 14336ULL * ((1U << 20) - 1));
}

}  // namespace
}  // namespace npushmem::moe
