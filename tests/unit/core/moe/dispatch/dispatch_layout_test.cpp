// SPDX-License-Identifier: BSD-3-Clause
#include "core/moe/dispatch/dispatch_layout.hpp"

#include <gtest/gtest.h>

namespace npushmem::moe {
namespace {

TEST(DispatchLayout, PartsFollowEachOtherWithoutOverlap) {
    for (const std::uint64_t row : {1U, 14U, 32U, 33U, 2000U, 14336U}) {
        const DispatchLayout layout(3, 5, Rows{7}, Bytes{row});
        EXPECT_EQ(layout.counts(0).value(), 0U);
        EXPECT_EQ(layout.arrived(0), layout.counts(2) + Bytes{128});
        EXPECT_EQ(layout.record(0, 0), layout.arrived(2) + Bytes{128});
        EXPECT_EQ(layout.record_bytes().value(), 384U);
        EXPECT_EQ(layout.record(1, 0), layout.record(0, 2) + layout.record_bytes());
        EXPECT_EQ(layout.record(4, 1), layout.record(0, 1));
        EXPECT_EQ(layout.slots(), layout.record(1, 2) + layout.record_bytes());
        EXPECT_EQ(layout.x(), layout.slots() + Bytes{128});
        EXPECT_GE(layout.canary(), layout.x() + Bytes{row} * 7);
        EXPECT_EQ(layout.total(), layout.canary() + Bytes{128});
        for (const Bytes part : {layout.record(1, 1), layout.slots(), layout.x(), layout.canary()})
            EXPECT_EQ(part.value() % 128, 0U);
    }
}

TEST(DispatchLayout, SizesBeyondFourGigabytesDoNotWrap) {
    const DispatchLayout layout(1, 1, Rows{0x7FFFFFFF}, Bytes{14336});
    EXPECT_GE(layout.canary().value(), 0x7FFFFFFFULL * 14336);
}

}  // namespace
}  // namespace npushmem::moe
