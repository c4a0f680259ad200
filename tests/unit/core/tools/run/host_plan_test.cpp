#include "core/tools/run/host_plan.hpp"

#include <gtest/gtest.h>

#include <algorithm>
#include <vector>

namespace npushmem::run {
namespace {

std::vector<int> hosts(int npes, int nodes, MapBy map_by) {
    std::vector<int> out;
    for (int pe = 0; pe < npes; ++pe) out.push_back(emulated_host_of(pe, npes, nodes, map_by));
    return out;
}

TEST(HostPlan, KnownShapes) {
    EXPECT_EQ(hosts(10, 4, MapBy::block), (std::vector<int>{0, 0, 0, 1, 1, 1, 2, 2, 3, 3}));
    EXPECT_EQ(hosts(6, 3, MapBy::block), (std::vector<int>{0, 0, 1, 1, 2, 2}));
    EXPECT_EQ(hosts(5, 2, MapBy::round_robin), (std::vector<int>{0, 1, 0, 1, 0}));
}

TEST(HostPlan, EveryHostIsUsedAndSizesDifferByOneAtMost) {
    for (const MapBy map_by : {MapBy::block, MapBy::round_robin})
        for (int npes = 1; npes <= 40; ++npes)
            for (int nodes = 1; nodes <= npes; ++nodes) {
                const auto all = hosts(npes, nodes, map_by);
                std::vector<int> sizes(static_cast<std::size_t>(nodes));
                for (const int host : all) ++sizes.at(static_cast<std::size_t>(host));
                const auto [small, large] = std::minmax_element(sizes.begin(), sizes.end());
                EXPECT_GE(*small, 1);
                EXPECT_LE(*large - *small, 1);
                if (map_by == MapBy::block) {
                    EXPECT_TRUE(std::is_sorted(all.begin(), all.end()));
                }
            }
}

}  // namespace
}  // namespace npushmem::run
