// SPDX-License-Identifier: BSD-3-Clause
#include "core/map/host_layout.hpp"

#include <gmock/gmock.h>

namespace npushmem {
namespace {

using ::testing::ElementsAre;
using ::testing::ElementsAreArray;

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

std::vector<int> pes_of(const HostLayout& layout, int host) {
    const PeRange pes = layout.pes_of(host);
    return {pes.begin(), pes.end()};
}

TEST(HostLayout, NumbersHostsByTheirLowestPe) {
    const HostLayout layout = layout_of({7, 3, 7, 3, 9});
    EXPECT_EQ(layout.hosts(), 3);
    EXPECT_THAT(pes_of(layout, 0), ElementsAre(0, 2));
    EXPECT_THAT(pes_of(layout, 1), ElementsAre(1, 3));
    EXPECT_THAT(pes_of(layout, 2), ElementsAre(4));
    EXPECT_EQ(layout.local_index(3), 1);
    EXPECT_FALSE(layout.even());
}

TEST(HostLayout, OfOneHostEqualsThatOfEqualIdentities) {
    const HostLayout layout = HostLayout::of_one_host(3);
    const HostLayout expected = layout_of({7, 7, 7});
    EXPECT_EQ(layout.npes(), expected.npes());
    EXPECT_EQ(layout.hosts(), expected.hosts());
    EXPECT_EQ(layout.distribution(), expected.distribution());
    EXPECT_EQ(layout.even(), expected.even());
    EXPECT_EQ(pes_of(layout, 0), pes_of(expected, 0));
    for (int pe = 0; pe < 3; ++pe) {
        EXPECT_EQ(layout.host_of(pe), expected.host_of(pe)) << pe;
        EXPECT_EQ(layout.local_index(pe), expected.local_index(pe)) << pe;
    }
}

TEST(HostLayout, EveryPartOfTheIdentityCounts) {
    std::vector<npushmem_host_id> identities(5, on_host(0));
    identities[1].machine = 2;
    identities[2].space = 1;
    identities[3].emulated = 1;
    identities[4].user = 1;
    EXPECT_EQ(HostLayout(identities).hosts(), 5);
}

// Every distribution finds each PE where it is. `host_of_pe` numbers hosts in the order of their lowest PE.
void expect_places(const std::vector<int>& host_of_pe) {
    const HostLayout layout = layout_of(host_of_pe);
    std::vector<std::vector<int>> expected(static_cast<std::size_t>(layout.hosts()));
    for (int pe = 0; pe < layout.npes(); ++pe) {
        const int host = host_of_pe[static_cast<std::size_t>(pe)];
        ASSERT_EQ(layout.host_of(pe), host) << pe;
        auto& local = expected[static_cast<std::size_t>(host)];
        ASSERT_EQ(layout.local_index(pe), static_cast<int>(local.size())) << pe;
        local.push_back(pe);
    }
    for (int host = 0; host < layout.hosts(); ++host)
        ASSERT_THAT(pes_of(layout, host), ElementsAreArray(expected[static_cast<std::size_t>(host)])) << host;
}

TEST(HostLayout, FindsPesOfUnevenAndIrregularShapes) {
    expect_places({0, 0, 0, 1, 2, 2});
    expect_places({0, 1, 2, 0, 1});
    expect_places({0, 1, 1, 0, 2, 1});
    EXPECT_EQ(layout_of({}).hosts(), 0);
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
            expect_places(block);
            expect_places(robin);
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
