// SPDX-License-Identifier: BSD-3-Clause
// Negative controls: they show that the tests of dispatch and combine can fail. Each test here injects one error on one
// rank, where the argument checks do not see it. The audit, the comparison of the output or the check of the canary
// must detect it.
#include <gmock/gmock.h>

#include <utility>

#include "tests/unit/core/moe/combine_fixture.hpp"
#include "tests/unit/core/moe/dispatch/layer_fixture.hpp"

namespace npushmem::moe {
namespace {

using ::testing::AllOf;
using ::testing::HasSubstr;

const CaseShape shape{.ranks = 2, .experts = 4, .top_k = 2, .tokens = 6, .seed = 61, .absent = 0.0};

// Runs one combine on all ranks. Every rank fills x according to the correct plan. Before the combine, rank 0 replaces
// its plan with a copy that `corrupt` has changed. Afterwards calls inspect(pe, succeeded, difference) on every rank;
// `difference` is "" when the rank's output is correct.
template <class Corrupt, class Inspect>
void combine_corrupted(CombineMode mode, const Corrupt& corrupt, const Inspect& inspect) {
    const Routing routing = random_routing(shape);
    CombineConfig config = config_for(shape, 40);
    config.mode = mode;
    CombineFixture bench(shape.ranks, config);
    bench.run([&](CombinePe& pe) {
        ASSERT_TRUE(pe.open() && pe.route(routing)) << pe.error();
        pe.fill(1);
        CombinePlan plan = pe.engine().plan();
        if (pe.pe() == 0) corrupt(plan);
        ReceivedRows rows{std::move(plan), {}, {}};
        ASSERT_TRUE(pe.engine().adopt(std::move(rows), routing.rank(static_cast<std::size_t>(pe.pe()))).ok());
        const bool succeeded = pe.combine();
        inspect(pe, succeeded, pe.first_difference(1));
        pe.barrier();
    });
}

// `plan` is rank 0's plan. Returns its first local expert that has at least two rows for rank 1.
std::int32_t expert_for_1(const CombinePlan& plan) {
    std::int32_t expert = 0;
    while (expert + 1 < plan.local_experts && plan.fragment(expert, 1).count.value() < 2) ++expert;
    EXPECT_GE(plan.fragment(expert, 1).count.value(), 2U);
    return expert;
}
// Returns the index in x of this expert's first row for rank 1.
std::uint64_t first_row_for_1(const CombinePlan& plan) { return plan.fragment(expert_for_1(plan), 1).first.value(); }

TEST(CombineControls, TheAuditReportsADroppedRow) {
    const auto drop = [](CombinePlan& plan) { --plan.length_table[plan.entry(expert_for_1(plan), 1)]; };
    combine_corrupted(CombineMode::direct, drop, [](CombinePe& pe, bool succeeded, const std::string& difference) {
        EXPECT_EQ(succeeded, pe.pe() == 0) << pe.error();
        if (pe.pe() != 1) return;
        EXPECT_THAT(pe.error(), AllOf(HasSubstr("0 rows have been put into slot"), HasSubstr("the routing says 1")));
        EXPECT_NE(difference, "");
    });
}

TEST(CombineControls, TheAuditReportsARowSentTwiceInsteadOfAnother) {
    const auto repeat = [](CombinePlan& plan) {
        const std::uint64_t row = first_row_for_1(plan);
        plan.slots[row + 1] = plan.slots[row];
    };
    combine_corrupted(CombineMode::direct, repeat, [](CombinePe& pe, bool succeeded, const std::string&) {
        EXPECT_EQ(succeeded, pe.pe() == 0) << pe.error();
        if (pe.pe() != 1) return;
        EXPECT_THAT(pe.error(), HasSubstr("rows have been put into slot"));
    });
}

TEST(CombineControls, SwappedRowsMakeTheOutputDiffer) {
    const auto swap = [](CombinePlan& plan) {
        const std::uint64_t row = first_row_for_1(plan);
        std::swap(plan.slots[row], plan.slots[row + 1]);
    };
    combine_corrupted(CombineMode::direct, swap, [](CombinePe& pe, bool succeeded, const std::string& difference) {
        EXPECT_TRUE(succeeded) << pe.error();  // the audit passes, because each slot has been written once
        EXPECT_EQ(difference.empty(), pe.pe() == 0);
    });
}

// In modes chunked and stream the order of the rows determines their slots. This control therefore shifts rank 1's
// fragment by one row instead of changing `slots`.
TEST(CombineControls, RowsOfAnotherFragmentMakeTheOutputDifferInModesChunkedAndStream) {
    const auto shift = [](CombinePlan& plan) {
        std::int32_t& offset = plan.offset_table[plan.entry(expert_for_1(plan), 1)];
        offset += offset > 0 ? -1 : 1;
    };
    for (const CombineMode mode : {CombineMode::chunked, CombineMode::stream}) {
        combine_corrupted(mode, shift, [](CombinePe& pe, bool succeeded, const std::string& difference) {
            EXPECT_TRUE(succeeded) << pe.error();
            EXPECT_EQ(difference.empty(), pe.pe() == 0);
        });
    }
}

TEST(CombineControls, RowsOfThePreviousCallMakeTheOutputDiffer) {
    const Routing routing = random_routing(shape);
    for (const CombineMode mode : {CombineMode::direct, CombineMode::chunked, CombineMode::stream}) {
        CombineConfig config = config_for(shape, 40);
        config.mode = mode;
        CombineFixture bench(shape.ranks, config);
        bench.run([&](CombinePe& pe) {
            ASSERT_TRUE(pe.open() && pe.route(routing)) << pe.error();
            pe.fill(1);
            ASSERT_TRUE(pe.combine()) << pe.error();
            EXPECT_EQ(pe.first_difference(1), "");
            pe.fill(pe.pe() == 0 ? 1 : 2);  // rank 0 sends the payload of the first call again
            ASSERT_TRUE(pe.combine()) << pe.error();
            EXPECT_NE(pe.first_difference(2), "");
        });
    }
}

TEST(CombineControls, TheDispatchReportsAnOverwrittenByteAfterItsRows) {
    const Routing routing = random_routing(shape);
    LayerFixture bench(shape.ranks, layer_config(shape, 40));
    bench.run([&](LayerPe& pe) {
        ASSERT_TRUE(pe.open()) << pe.error();
        if (pe.pe() == 1) pe.corrupt_canary();
        EXPECT_EQ(pe.dispatch(routing, 1), pe.pe() == 0) << pe.error();
        if (pe.pe() != 1) return;
        EXPECT_THAT(pe.error(), HasSubstr("byte 3 after the last row of x was overwritten"));
    });
}

}  // namespace
}  // namespace npushmem::moe
