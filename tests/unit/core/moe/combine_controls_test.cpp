// Controls of the combine's tests. Each makes one error on one rank, behind the checks of the interface, and the tests
// must detect it.
#include <gmock/gmock.h>

#include <utility>

#include "tests/unit/core/moe/combine_fixture.hpp"
#include "tests/unit/core/moe/dispatch/layer_fixture.hpp"

namespace npushmem::moe {
namespace {

using ::testing::AllOf;
using ::testing::HasSubstr;

const CaseShape shape{2, 4, 2, 6, 61, 0.0};

// Runs one call in which rank 0 sends by tables that `corrupt` has changed, after x was filled for the right ones.
// `inspect` is called on every rank with the combine's status and the first difference of its output.
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
        pe.engine().adopt(std::move(plan), routing.rank(static_cast<std::size_t>(pe.pe())));
        const bool well = pe.combine();
        inspect(pe, well, pe.first_difference(1));
        pe.barrier();
    });
}

// The first expert of rank 0 that has several rows for rank 1, and its first one.
std::int32_t expert_for_1(const CombinePlan& plan) {
    std::int32_t expert = 0;
    while (expert + 1 < plan.local_experts && plan.fragment(expert, 1).count.value() < 2) ++expert;
    EXPECT_GE(plan.fragment(expert, 1).count.value(), 2U);
    return expert;
}
std::uint64_t first_for_1(const CombinePlan& plan) { return plan.fragment(expert_for_1(plan), 1).first.value(); }

TEST(CombineControls, AuditReportsADroppedRow) {
    const auto drop = [](CombinePlan& plan) { --plan.length_table[plan.entry(expert_for_1(plan), 1)]; };
    combine_corrupted(CombineMode::direct, drop, [](CombinePe& pe, bool well, const std::string& difference) {
        EXPECT_EQ(well, pe.pe() == 0) << pe.error();
        if (pe.pe() != 1) return;
        EXPECT_THAT(pe.error(), AllOf(HasSubstr("0 rows have been put into slot"), HasSubstr("the routing says 1")));
        EXPECT_NE(difference, "");
    });
}

TEST(CombineControls, AuditDetectsADuplicateRowThatReplacesAnother) {
    const auto repeat = [](CombinePlan& plan) {
        const std::uint64_t row = first_for_1(plan);
        plan.slots[row + 1] = plan.slots[row];
    };
    combine_corrupted(CombineMode::direct, repeat, [](CombinePe& pe, bool well, const std::string&) {
        EXPECT_EQ(well, pe.pe() == 0) << pe.error();
        if (pe.pe() != 1) return;
        EXPECT_THAT(pe.error(), HasSubstr("rows have been put into slot"));
    });
}

TEST(CombineControls, PayloadDetectsSwappedRows) {
    const auto swap = [](CombinePlan& plan) {
        const std::uint64_t row = first_for_1(plan);
        std::swap(plan.slots[row], plan.slots[row + 1]);
    };
    combine_corrupted(CombineMode::direct, swap, [](CombinePe& pe, bool well, const std::string& difference) {
        EXPECT_TRUE(well) << pe.error();  // each slot has been written once
        EXPECT_EQ(difference.empty(), pe.pe() == 0);
    });
}

// In the other modes the order of the rows determines their slots.
TEST(CombineControls, PayloadDetectsRowsOfAnotherFragmentInEveryMode) {
    const auto shift = [](CombinePlan& plan) {
        std::int32_t& offset = plan.offset_table[plan.entry(expert_for_1(plan), 1)];
        offset += offset > 0 ? -1 : 1;
    };
    for (const CombineMode mode : {CombineMode::chunked, CombineMode::stream}) {
        combine_corrupted(mode, shift, [](CombinePe& pe, bool well, const std::string& difference) {
            EXPECT_TRUE(well) << pe.error();
            EXPECT_EQ(difference.empty(), pe.pe() == 0);
        });
    }
}

TEST(CombineControls, PayloadDetectsARowOfTheCallBefore) {
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
            pe.fill(pe.pe() == 0 ? 1 : 2);  // rank 0 sends what it sent before
            ASSERT_TRUE(pe.combine()) << pe.error();
            EXPECT_NE(pe.first_difference(2), "");
        });
    }
}

TEST(CombineControls, DetectsAByteWrittenBehindTheRowsOfADispatch) {
    const Routing routing = random_routing(shape);
    LayerFixture bench(shape.ranks, layer_config(shape, 40));
    bench.run([&](LayerPe& pe) {
        ASSERT_TRUE(pe.open()) << pe.error();
        if (pe.pe() == 1) pe.corrupt_canary();
        EXPECT_EQ(pe.dispatch(routing, 1), pe.pe() == 0) << pe.error();
        if (pe.pe() != 1) return;
        EXPECT_THAT(pe.error(), HasSubstr("byte 3 behind the last row of x was overwritten"));
    });
}

}  // namespace
}  // namespace npushmem::moe
