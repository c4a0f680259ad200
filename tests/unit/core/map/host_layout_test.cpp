// SPDX-License-Identifier: BSD-3-Clause
#include "core/map/host_layout.hpp"

#include <gmock/gmock.h>

namespace npushmem {
namespace {

using ::testing::ElementsAre;

npushmem_host_id on_host(int number) {
    npushmem_host_id id{};
    id.machine = 1;
    id.emulated = number;
    return id;
}

HostLayout layout_of(const std::vector<int>& host_of_pe) {
    std::vector<npushmem_host_id> identities;
    for (const int host : host_of_pe) identities.push_back(on_host(host));
    return HostLayout(identities);
}

TEST(HostLayout, NumbersHostsByTheirLowestPe) {
    const HostLayout layout = layout_of({7, 3, 7, 3, 9});
    EXPECT_EQ(layout.hosts(), 3);
    EXPECT_THAT(layout.pes_of(0), ElementsAre(0, 2));
    EXPECT_THAT(layout.pes_of(1), ElementsAre(1, 3));
    EXPECT_THAT(layout.pes_of(2), ElementsAre(4));
    EXPECT_EQ(layout.local_index(3), 1);
    EXPECT_FALSE(layout.even());
}

TEST(HostLayout, EveryPartOfTheIdentityCounts) {
    std::vector<npushmem_host_id> identities(5, on_host(0));
    identities[1].machine = 2;
    identities[2].space = 1;
    identities[3].emulated = 1;
    identities[4].user = 1;
    EXPECT_EQ(HostLayout(identities).hosts(), 5);
}

// All shapes up to 4 hosts of 8 PEs, laid out in both ways.
TEST(HostLayout, DistinguishesBlockFromRoundRobinForEveryShape) {
    for (int hosts = 1; hosts <= 4; ++hosts) {
        for (int each = 1; each <= 8; ++each) {
            std::vector<int> block;
            std::vector<int> robin;
            for (int i = 0; i < hosts * each; ++i) {
                block.push_back(i / each);
                robin.push_back(i % hosts);
            }
            EXPECT_EQ(layout_of(block).distribution(), Distribution::block) << hosts << " x " << each;
            const auto expected = hosts == 1 || each == 1 ? Distribution::block : Distribution::round_robin;
            EXPECT_EQ(layout_of(robin).distribution(), expected) << hosts << " x " << each;
            EXPECT_TRUE(layout_of(block).even() && layout_of(robin).even());
        }
    }
}

TEST(HostLayout, UnevenAndIrregularShapes) {
    EXPECT_EQ(layout_of({0, 0, 0, 1}).distribution(), Distribution::block);
    EXPECT_EQ(layout_of({0, 1, 2, 0, 1}).distribution(), Distribution::round_robin);
    EXPECT_EQ(layout_of({0, 1, 1, 0}).distribution(), Distribution::other);
    EXPECT_EQ(layout_of({0, 0, 1, 1, 0}).distribution(), Distribution::other);
}

}  // namespace
}  // namespace npushmem
