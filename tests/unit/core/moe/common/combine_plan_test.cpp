// SPDX-License-Identifier: BSD-3-Clause
#include <gmock/gmock.h>

#include "core/moe/common/combine_plan.hpp"
#include "tests/unit/core/moe/routing_cases.hpp"

namespace npushmem::moe {

namespace {

using ::testing::ElementsAre;

TEST(CombinePlan, LaysRowsOutExpertMajorThenRankThenToken) {
    // Rank 0: token 0 -> experts 2, 0; token 1 -> 1, none. Rank 1: token 0 -> 0, 3.
    const Routing routing{"", "", 4, 2, {{2, 0, 1, -1}, {0, 3}}, {{1, 1, 1, 1}, {1, 1}}};
    const auto plan = build_combine_plan(views_of(routing), ExpertPlacement(4, 2), 0);
    ASSERT_TRUE(plan.ok());
    EXPECT_THAT(plan.value().length_table, ElementsAre(1, 1, 1, 0));
    EXPECT_THAT(plan.value().offset_table, ElementsAre(0, 1, 2, 3));
    EXPECT_THAT(plan.value().slots, ElementsAre(1U, 0U, 2U));
    const auto other = build_combine_plan(views_of(routing), ExpertPlacement(4, 2), 1);
    EXPECT_THAT(other.value().length_table, ElementsAre(1, 0, 0, 1));
    EXPECT_THAT(other.value().slots, ElementsAre(0U, 1U));
}

TEST(CombinePlan, AlignedExpertsBeginAtMultiplesAndLeaveGaps) {
    const Routing routing{"", "", 4, 2, {{2, 0, 1, -1}, {0, 3}}, {{1, 1, 1, 1}, {1, 1}}};
    const auto plan = build_combine_plan(views_of(routing), ExpertPlacement(4, 2), 0, 3);
    ASSERT_TRUE(plan.ok());
    EXPECT_THAT(plan.value().length_table, ElementsAre(1, 1, 1, 0));
    EXPECT_THAT(plan.value().offset_table, ElementsAre(0, 1, 3, 4));
    EXPECT_EQ(plan.value().rows, Rows{6});
    EXPECT_THAT(plan.value().slots, ElementsAre(1U, 0U, no_slot, 2U, no_slot, no_slot));
    EXPECT_EQ(plan.value().rows_of_expert(0), Rows{2});
    EXPECT_EQ(plan.value().rows_of_expert(1), Rows{1});
}

// Every choice of every token is in exactly one plan, with its slot, in the fragment of its expert and rank.
void expect_partition(const Routing& routing, std::int32_t ranks) {
    const ExpertPlacement placement(routing.experts, ranks);
    std::vector<std::vector<int>> seen;
    for (const auto& ids : routing.expert_ids) seen.emplace_back(ids.size(), 0);
    for (std::int32_t self = 0; self < ranks; ++self) {
        const CombinePlan plan = build_combine_plan(views_of(routing), placement, self).value();
        ASSERT_EQ(plan.slots.size(), plan.rows.value());
        for (std::int32_t e = 0; e < plan.local_experts; ++e) {
            for (std::int32_t r = 0; r < ranks; ++r) {
                const Fragment f = plan.fragment(e, r);
                for (std::uint64_t row = f.first.value(); row < f.first.value() + f.count.value(); ++row) {
                    ASSERT_EQ(routing.expert_ids[static_cast<std::size_t>(r)][plan.slots[row]], plan.first_expert + e);
                    ++seen[static_cast<std::size_t>(r)][plan.slots[row]];
                }
            }
        }
    }
    for (std::size_t r = 0; r < seen.size(); ++r) {
        for (std::size_t i = 0; i < seen[r].size(); ++i) ASSERT_EQ(seen[r][i], routing.expert_ids[r][i] >= 0 ? 1 : 0);
    }
}

TEST(CombinePlan, EveryChoiceIsInExactlyOnePlan) {
    for (const std::int32_t ranks : {1, 2, 3, 8, 17}) {
        for (const std::int32_t experts : {1, 2, 8, 23}) {
            for (std::uint32_t seed = 1; seed <= 4; ++seed) {
                CaseShape shape{ranks, experts, 3, 7, seed};
                shape.empty_rank = seed == 2 ? 0 : (seed == 3 ? ranks - 1 : -1);
                expect_partition(random_routing(shape), ranks);
            }
        }
    }
}

TEST(CombinePlan, EmptyExpertsFirstLastAndAll) {
    CaseShape shape{2, 8, 2, 9, 5};
    shape.first_used = 1;
    expect_partition(random_routing(shape), 2);
    shape.last_used = 6;
    expect_partition(random_routing(shape), 2);
    shape.absent = 1.0;
    expect_partition(random_routing(shape), 2);
}

TEST(CombinePlan, RowsToARankAreTheSumOverExperts) {
    const Routing routing = random_routing({3, 9, 4, 11, 7});
    const ExpertPlacement placement(9, 3);
    std::uint64_t total = 0;
    for (std::int32_t self = 0; self < 3; ++self) {
        const CombinePlan plan = build_combine_plan(views_of(routing), placement, self).value();
        for (std::int32_t r = 0; r < 3; ++r) total += plan.rows_to(r).value();
    }
    std::uint64_t present = 0;
    for (const auto& ids : routing.expert_ids) present += std::ranges::count_if(ids, [](auto id) { return id >= 0; });
    EXPECT_EQ(total, present);
}

}  // namespace

namespace {

using ::testing::AllOf;
using ::testing::HasSubstr;

class PlanCheck : public ::testing::Test {
protected:
    // Rank 1 of 2 holds experts 2 and 3; rank 0 sends it two rows for each, rank 1 one for expert 3.
    const Routing routing_{"", "", 4, 2, {{2, 3, 3, 2}, {0, 3}}, {{1, 1, 1, 1}, {1, 1}}};
    const std::vector<RankRouting> views_ = views_of(routing_);
    CombinePlan plan_ = build_combine_plan(views_, ExpertPlacement(4, 2), 1).value();
    Rows capacity_{4};
};

TEST_F(PlanCheck, TheBuiltPlanPasses) {
    EXPECT_TRUE(check_tables(plan_, capacity_).ok());
    EXPECT_TRUE(check_slots(plan_, views_).ok());
}

TEST_F(PlanCheck, TableOutsideX) {
    plan_.offset_table[plan_.entry(1, 1)] = 5;
    const Status status = check_tables(plan_, capacity_);
    EXPECT_EQ(status.code(), Code::range);
    EXPECT_THAT(status.message(),
                AllOf(HasSubstr("expert 3"), HasSubstr("rank 1"), HasSubstr("5..5"), HasSubstr("5 rows")));
}

TEST_F(PlanCheck, OffsetAndLengthThatWouldOverflowInt32) {
    plan_.offset_table[0] = 0x7FFFFFFF;
    plan_.length_table[0] = 0x7FFFFFFF;
    EXPECT_THAT(check_tables(plan_, capacity_).message(), HasSubstr("2147483647..4294967293"));
}

TEST_F(PlanCheck, NegativeEntries) {
    plan_.length_table[0] = -2;
    EXPECT_THAT(check_tables(plan_, capacity_).message(),
                AllOf(HasSubstr("-2"), HasSubstr("negative"), HasSubstr("expert 2")));
    plan_.length_table[0] = 2;
    plan_.offset_table[0] = -1;
    EXPECT_THAT(check_tables(plan_, capacity_).message(), HasSubstr("-1..0"));
}

TEST_F(PlanCheck, OverlappingFragments) {
    plan_.offset_table[plan_.entry(1, 0)] = 1;
    EXPECT_THAT(check_tables(plan_, capacity_).message(),
                AllOf(HasSubstr("row 1"), HasSubstr("expert 2"), HasSubstr("expert 3")));
}

TEST_F(PlanCheck, CountAboveCapacity) {
    const Status status = check_tables(plan_, Rows{3});
    EXPECT_THAT(status.message(), AllOf(HasSubstr("rank 0"), HasSubstr("4 rows"), HasSubstr("capacity of 3")));
}

TEST_F(PlanCheck, TablesOfAnotherShape) {
    plan_.length_table.push_back(0);
    EXPECT_THAT(check_tables(plan_, capacity_).message(), HasSubstr("length_table 5"));
}

TEST_F(PlanCheck, RanksThatDisagreeOnACount) {
    plan_.length_table[plan_.entry(0, 0)] = 1;
    const Status status = check_slots(plan_, views_);
    EXPECT_EQ(status.code(), Code::mismatch);
    EXPECT_THAT(status.message(),
                AllOf(HasSubstr("expert 2"), HasSubstr("rank 0"), HasSubstr("says 1"), HasSubstr("expert 2")));
}

TEST_F(PlanCheck, SlotsOutsideTwiceOrOfAnotherExpert) {
    const std::uint32_t first = plan_.slots[0];
    plan_.slots[0] = 4;
    EXPECT_THAT(check_slots(plan_, views_).message(), AllOf(HasSubstr("slot 4"), HasSubstr("has 4 slots")));
    plan_.slots[0] = plan_.slots[1];
    EXPECT_THAT(check_slots(plan_, views_).message(), HasSubstr("another row"));
    plan_.slots[0] = first + 1;
    EXPECT_THAT(check_slots(plan_, views_).message(), HasSubstr("went to expert 3"));
    plan_.slots.pop_back();
    EXPECT_THAT(check_slots(plan_, views_).message(), HasSubstr("4 slots for the 5 rows"));
}

TEST(CombinePlan, RefusesAnotherOrderOfRowsNamingExpertRankAndRow) {
    const CaseShape shape{2, 4, 3, 9, 7, 0.0};
    const Routing routing = random_routing(shape);
    CombinePlan plan = build_combine_plan(views_of(routing), ExpertPlacement(4, 2), 1).value();
    const Fragment fragment = plan.fragment(1, 0);
    ASSERT_GE(fragment.count.value(), 2U);
    std::swap(plan.slots[fragment.first.value()], plan.slots[fragment.first.value() + 1]);
    const Status status = check_order(plan);
    EXPECT_EQ(status.code(), Code::unsupported);
    EXPECT_THAT(status.message(), AllOf(HasSubstr("expert 3 (local 1), rank 0"),
                                        HasSubstr("row " + std::to_string(fragment.first.value() + 1))));
}

}  // namespace

}  // namespace npushmem::moe
