#include "core/tools/run/binding_plan.hpp"

#include <gmock/gmock.h>

#include <set>

namespace npushmem::run {
namespace {

using ::testing::Each;
using ::testing::ElementsAre;
using ::testing::IsEmpty;

std::vector<CpuList> units(int count) {
    std::vector<CpuList> out;
    for (int i = 0; i < count; ++i) out.push_back({2 * i, 2 * i + 1});
    return out;
}

TEST(BindingPlan, CoreStartsOverWhenCoresAreUsedUp) {
    EXPECT_THAT(binding_plan(Bind::core, {{0}, {1}}, 3), ElementsAre(CpuList{0}, CpuList{1}, CpuList{0}));
}

TEST(BindingPlan, NoneBindsNobody) { EXPECT_THAT(binding_plan(Bind::none, units(4), 3), Each(IsEmpty())); }

TEST(BindingPlan, AutomaticSharesUntilPesOutnumberCores) {
    EXPECT_THAT(binding_plan(Bind::automatic, units(4), 2), ElementsAre(CpuList{0, 1, 2, 3}, CpuList{4, 5, 6, 7}));
    EXPECT_THAT(binding_plan(Bind::automatic, units(4), 5), Each(IsEmpty()));
}

TEST(BindingPlan, SharesAreDisjointAndEven) {
    for (int cores = 1; cores <= 12; ++cores)
        for (int npes = 1; npes <= cores; ++npes) {
            std::set<int> seen;
            std::size_t smallest = 1000;
            std::size_t largest = 0;
            for (const auto& cpus : binding_plan(Bind::share, units(cores), npes)) {
                for (const int cpu : cpus) EXPECT_TRUE(seen.insert(cpu).second);
                smallest = std::min(smallest, cpus.size());
                largest = std::max(largest, cpus.size());
            }
            EXPECT_EQ(seen.size(), static_cast<std::size_t>(2 * cores));
            EXPECT_LE(largest - smallest, 2U);
            EXPECT_GE(smallest, 2U);
        }
}

TEST(BindingPlan, ShareWithMorePesThanUnitsStartsOver) {
    EXPECT_THAT(binding_plan(Bind::share, {{0}, {1}}, 3), ElementsAre(CpuList{0}, CpuList{1}, CpuList{0}));
}

TEST(FormatCpus, JoinsRanges) {
    EXPECT_EQ(format_cpus({}), "");
    EXPECT_EQ(format_cpus({3}), "3");
    EXPECT_EQ(format_cpus({8, 0, 1, 2, 10, 11}), "0-2,8,10-11");
}

}  // namespace
}  // namespace npushmem::run
