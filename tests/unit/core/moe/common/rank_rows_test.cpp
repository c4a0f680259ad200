// SPDX-License-Identifier: BSD-3-Clause
#include "core/moe/common/rank_rows.hpp"

#include <gmock/gmock.h>

#include <set>
#include <vector>

#include "tests/unit/core/moe/routing_cases.hpp"

namespace npushmem::moe {
namespace {

using ::testing::ElementsAre;
using ::testing::IsEmpty;

TEST(RankRows, ATokenGoesOnceToEachRankOfItsExperts) {
    // Experts 0, 1 on rank 0; 2, 3 on rank 1; 4 on rank 2; 5 nowhere else but rank 2.
    const std::vector<std::int32_t> ids{3, 0, 2, 1, 5, -1, 4, 5, -1, -1, -1, -1};
    const std::vector<float> weights(ids.size(), 0.5F);
    const RoutingToRanks to = route_to_ranks({ids, weights}, 4, ExpertPlacement(6, 3));
    EXPECT_THAT(to.ranks, ElementsAre(0, 1, -1, 2, -1, -1, -1, -1, -1));
    EXPECT_THAT(to.ones, ::testing::Each(1.0F));
    EXPECT_THAT(slots_by_rank(to, 3), ElementsAre(0U, 1U, 3U));
}

TEST(RankRows, RowsAreNarrowerThanTheChoicesOnFewRanks) {
    const std::vector<std::int32_t> ids{7, 0, 3, 3};
    const std::vector<float> weights(4, 1.0F);
    EXPECT_THAT(route_to_ranks({ids, weights}, 4, ExpertPlacement(8, 2)).ranks, ElementsAre(0, 1));
    EXPECT_THAT(route_to_ranks({ids, weights}, 2, ExpertPlacement(8, 8)).ranks, ElementsAre(0, 7, 3, -1));
}

// Rank 0, token 0: experts 1, 3, 0. Rank 1: token 0: 3, 2, 2; token 1: 0, -1, 3. Rank 1 holds experts 2 and 3.
TEST(RankRows, RelatesReceivedRowsToTheExpertsRows) {
    const Routing routing{"", "", 4, 3, {{1, 3, 0}, {3, 2, 2, 0, -1, 3}}, {{1, 2, 3}, {4, 5, 6, 7, 8, 9}}};
    const ExpertPlacement placement(4, 2);
    const auto received = received_rows(views_of(routing), 3, placement, 1);
    ASSERT_TRUE(received.ok());
    EXPECT_THAT(received.value().plan.length_table, ElementsAre(1, 2));
    EXPECT_THAT(received.value().plan.slots, ElementsAre(1U, 0U, 3U));
    const auto plan = build_combine_plan(received.value().plan, 2, received.value().choices, 3, placement, 1);
    ASSERT_TRUE(plan.ok());
    EXPECT_THAT(plan.value().slots, ElementsAre(1U, 2U, 1U, 0U, 5U));  // expert 2: two of rank 1; expert 3
    const RankRows rows = relate_rows(received.value(), plan.value(), 3);
    EXPECT_THAT(rows.source, ElementsAre(1, 1, 0, 1, 2));
    EXPECT_THAT(rows.weights, ElementsAre(5.0F, 6.0F, 2.0F, 4.0F, 9.0F));
    EXPECT_THAT(rows.first, ElementsAre(0U, 1U, 4U, 5U));
    EXPECT_THAT(rows.parts, ElementsAre(2U, 3U, 0U, 1U, 4U));
}

TEST(RankRows, ARowOutsideOfAllFragmentsHasNoSource) {
    const Routing routing{"", "", 1, 1, {{0, -1}}, {{3, 4}}};
    const auto received = received_rows(views_of(routing), 1, ExpertPlacement(1, 1), 0);
    CombinePlan plan = empty_plan(ExpertPlacement(1, 1), 0);
    plan.offset_table = {1};
    plan.length_table = {1};
    plan.slots = {no_slot, 0, no_slot};
    plan.rows = Rows{3};
    const RankRows rows = relate_rows(received.value(), plan, 1);
    EXPECT_THAT(rows.source, ElementsAre(-1, 0, -1));
    EXPECT_THAT(rows.weights, ElementsAre(0.0F, 3.0F, 0.0F));
    EXPECT_THAT(rows.parts, ElementsAre(1U));
}

// The rows of each choice of each token, over all ranks, against the routing itself.
void expect_every_choice(const Routing& routing, std::int32_t ranks) {
    const ExpertPlacement placement(routing.experts, ranks);
    const std::vector<RankRouting> views = views_of(routing);
    std::size_t rows_of_experts = 0;
    for (std::int32_t self = 0; self < ranks; ++self) {
        const ReceivedRows received = received_rows(views, routing.top_k, placement, self).value();
        const std::int32_t width = std::min(routing.top_k, ranks);
        const CombinePlan plan =
            build_combine_plan(received.plan, width, received.choices, routing.top_k, placement, self).value();
        const CombinePlan expected = build_combine_plan(views, placement, self).value();
        ASSERT_EQ(plan.offset_table, expected.offset_table);
        ASSERT_EQ(plan.length_table, expected.length_table);
        ASSERT_EQ(plan.slots, expected.slots);
        const RankRows rows = relate_rows(received, plan, routing.top_k);
        ASSERT_EQ(rows.first.size(), received.plan.rows.value() + 1);
        ASSERT_EQ(rows.parts.size(), plan.rows.value());
        std::set<std::pair<std::int32_t, std::uint32_t>> tokens;
        for (std::int32_t rank = 0; rank < ranks; ++rank) {
            const Fragment f = received.plan.fragment(0, rank);
            for (std::uint64_t row = f.first.value(); row < (f.first + f.count).value(); ++row) {
                const std::uint32_t token = received.plan.slots[row] / static_cast<std::uint32_t>(width);
                ASSERT_TRUE(tokens.insert({rank, token}).second);
                ASSERT_LT(rows.first[row], rows.first[row + 1]) << "a received row without choices here";
                std::uint32_t last = 0;
                for (std::uint64_t i = rows.first[row]; i < rows.first[row + 1]; ++i) {
                    const std::uint32_t at = rows.parts[i];
                    const std::uint32_t slot = plan.slots[at];
                    ASSERT_EQ(slot / static_cast<std::uint32_t>(routing.top_k), token);
                    ASSERT_TRUE(i == rows.first[row] || slot > last) << "choices are not in order";
                    ASSERT_EQ(rows.source[at], static_cast<std::int32_t>(row));
                    ASSERT_EQ(rows.weights[at], views[static_cast<std::size_t>(rank)].weights[slot]);
                    last = slot;
                }
            }
        }
        rows_of_experts += rows.parts.size();
    }
    std::size_t present = 0;
    for (const auto& ids : routing.expert_ids) present += std::ranges::count_if(ids, [](auto id) { return id >= 0; });
    EXPECT_EQ(rows_of_experts, present);
}

TEST(RankRows, EveryChoiceIsAddedOnceForEveryShape) {
    for (const std::int32_t ranks : {1, 2, 3, 8, 17}) {
        for (const std::int32_t experts : {1, 2, 8, 23, 256}) {
            for (const std::int32_t top_k : {1, 3, 8, 32}) {
                CaseShape shape{ranks, experts, top_k, 7, static_cast<std::uint32_t>(top_k)};
                shape.empty_rank = top_k == 3 ? 0 : -1;
                Routing routing = random_routing(shape);
                use_inexact_weights(routing);
                SCOPED_TRACE(::testing::Message() << ranks << " ranks, " << experts << " experts, top-" << top_k);
                expect_every_choice(routing, ranks);
            }
        }
    }
}

TEST(RankRows, NothingIsReceivedWithoutChoices) {
    CaseShape shape{3, 6, 4, 5, 2};
    shape.absent = 1.0;
    const ReceivedRows received = received_rows(views_of(random_routing(shape)), 4, ExpertPlacement(6, 3), 1).value();
    EXPECT_EQ(received.plan.rows, Rows{0});
    EXPECT_THAT(received.choices, IsEmpty());
}

}  // namespace
}  // namespace npushmem::moe
