#include "core/moe/plan_check.hpp"

#include <gmock/gmock.h>

#include "tests/unit/core/moe/routing_cases.hpp"

namespace npushmem::moe {
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

}  // namespace
}  // namespace npushmem::moe
