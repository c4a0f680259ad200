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

TEST(DispatchLayout, FixedSlotsHaveTwoBuffersInTurn) {
    const DispatchLayout layout(3, 5, Rows{60}, Bytes{40}, 2, ExpertRows::fixed(4, 7));
    const auto size = [](std::uint64_t bytes) { return aligned_up(Bytes{bytes}, 128); };
    EXPECT_EQ(layout.slots(0), layout.mapped() + Bytes{128});
    EXPECT_EQ(layout.slots(1), layout.slots(0) + size(60 * 4));
    EXPECT_EQ(layout.choices(0), layout.slots(1) + size(60 * 4));
    EXPECT_EQ(layout.choices(1), layout.choices(0) + size(60 * 2 * 8));
    EXPECT_EQ(layout.x(0), layout.choices(1) + size(60 * 2 * 8));
    EXPECT_EQ(layout.x(1), layout.x(0) + size(60 * 40));
    EXPECT_EQ(layout.canary(), layout.x(1) + size(60 * 40));
    EXPECT_EQ(layout.x(6), layout.x(0));
    EXPECT_EQ(layout.expert_rows().of_rank(2), 14U);
    EXPECT_EQ(layout.expert_rows().next(21), 24U);
}

TEST(DispatchLayout, FollowsTheConfiguration) {
    CombineConfig config;
    config.experts = 7;
    config.top_k = 2;
    config.hidden = 10;
    config.max_tokens = 5;
    config.capacity = 33;
    config.expert_alignment = 4;
    EXPECT_EQ(DispatchLayout::of(config, 3).capacity(), Rows{33});
    EXPECT_EQ(DispatchLayout::of(config, 3).expert_rows().next(5), 8U);
    config.capacity = fixed_slots;
    EXPECT_EQ(DispatchLayout::of(config, 3).capacity(), Rows{3 * 16}) << "3 experts of rank 0, 3 * 5 tokens rounded up";
    config.rows_per = RowsPer::rank;
    EXPECT_EQ(DispatchLayout::of(config, 3).capacity(), Rows{15}) << "one row per token of each rank";
    EXPECT_EQ(DispatchLayout::of(config, 3).choices_per_row(), 2U);
}

TEST(DispatchLayout, SizesBeyondFourGigabytesDoNotWrap) {
    const DispatchLayout layout(1, 1, Rows{0x7FFFFFFF}, Bytes{14336});
    EXPECT_GE(layout.canary().value(), 0x7FFFFFFFULL * 14336);
}

}  // namespace
}  // namespace npushmem::moe
