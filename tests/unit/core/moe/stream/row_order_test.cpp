// SPDX-License-Identifier: BSD-3-Clause
#include "core/moe/stream/row_order.hpp"

#include <gtest/gtest.h>

#include <algorithm>
#include <span>

#include "tests/unit/core/moe/routing_cases.hpp"

namespace npushmem::moe {
namespace {

// The rows that each source sends, by its plan, are the rows that the receiver expects, by its routing alone.
TEST(RowOrder, IsTheSendOrderOfTheSources) {
    for (const std::uint32_t seed : {1, 2, 3, 4, 5}) {
        for (const auto& [ranks, experts] : {std::pair{1, 3}, {3, 7}, {4, 2}, {8, 64}}) {
            const CaseShape shape{ranks, experts, 3, 9, seed};
            const Routing routing = random_routing(shape);
            const ExpertPlacement placement(experts, ranks);
            for (int source = 0; source < ranks; ++source) {
                const CombinePlan plan = build_combine_plan(views_of(routing), placement, source).value();
                for (int rank = 0; rank < ranks; ++rank) {
                    std::vector<std::uint32_t> sent;
                    for (std::int32_t e = 0; e < plan.local_experts; ++e) {
                        const Fragment f = plan.fragment(e, rank);
                        for (std::uint64_t i = 0; i < f.count.value(); ++i)
                            sent.push_back(plan.slots[f.first.value() + i]);
                    }
                    const RowOrder order =
                        row_order(routing.expert_ids[static_cast<std::size_t>(rank)], placement, Rows{27}, 1);
                    const auto at = static_cast<std::size_t>(source);
                    ASSERT_EQ(order.first.size(), static_cast<std::size_t>(ranks) + 1);
                    EXPECT_EQ(sent, std::vector<std::uint32_t>(
                                        order.slots.begin() + static_cast<std::ptrdiff_t>(order.first[at]),
                                        order.slots.begin() + static_cast<std::ptrdiff_t>(order.first[at + 1])));
                }
                EXPECT_TRUE(check_order(plan).ok());
            }
        }
    }
}

// Nine tokens in chunks of two, and one chunk too many: each chunk's order depends on its choices alone.
TEST(RowOrder, OfChunksIsThatOfTheTokensOfEach) {
    const CaseShape shape{3, 7, 3, 9, 6};
    const std::vector<std::int32_t> ids = random_routing(shape).expert_ids[1];
    const ExpertPlacement placement(7, 3);
    const RowOrder order = row_order(ids, placement, Rows{6}, 6);
    ASSERT_EQ(order.first.size(), 6 * 4U);
    for (std::size_t chunk = 0; chunk < 6; ++chunk) {
        const auto part = std::span(ids).subspan(std::min<std::size_t>(chunk * 6, 27), chunk < 4    ? 6
                                                                                       : chunk == 4 ? 3
                                                                                                    : 0);
        const RowOrder alone = row_order(part, placement, Rows{6}, 1);
        for (std::size_t source = 0; source < 3; ++source) {
            const std::size_t begin = order.first[chunk * 4 + source];
            ASSERT_EQ(order.first[chunk * 4 + source + 1] - begin, alone.first[source + 1] - alone.first[source]);
            for (std::size_t i = alone.first[source]; i < alone.first[source + 1]; ++i)
                EXPECT_EQ(order.slots[begin + i - alone.first[source]], alone.slots[i] + chunk * 6);
        }
    }
}

TEST(RowRing, HoldsWholeRowsAndAtLeastOne) {
    for (const std::uint64_t row : {1, 14, 32, 33, 2000, 14336, 65536, 65537, 1 << 26}) {
        for (const std::uint64_t most : {0, 1, 7, 100000}) {
            for (const std::uint64_t asked : {0, 1, 3}) {
                const RingShape shape = row_ring_shape(Bytes{row}, Rows{most}, Rows{asked});
                EXPECT_TRUE(shape.check().ok()) << shape.check().message();
                const std::uint64_t step = ring_step(Bytes{row}).value();
                EXPECT_EQ(shape.size.value() % step, 0U);
                EXPECT_EQ(shape.batch.value() % step, 0U);
                if (asked > 0) {
                    EXPECT_EQ(shape.size.value(), asked * step);
                }
            }
        }
    }
}

}  // namespace
}  // namespace npushmem::moe
