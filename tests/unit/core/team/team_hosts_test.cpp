// SPDX-License-Identifier: BSD-3-Clause
#include "core/team/team_hosts.hpp"

#include <gmock/gmock.h>

namespace npushmem {
namespace {

using ::testing::ElementsAre;

// A job whose PE i is on host hosts[i].
HostLayout layout_of(const std::vector<int>& hosts) {
    std::vector<npushmem_host_id> identities;
    for (const int host : hosts) identities.push_back({1, 1, host, 0});
    return HostLayout(identities);
}

TEST(TeamHosts, NumbersHostsAndLocalIndicesInTheOrderOfTheMembers) {
    const auto grid = host_grid_of(members_by_host(PeRange{0, 1, 6}, layout_of({0, 1, 2, 0, 1, 2})), 4);
    ASSERT_NE(grid, nullptr);
    EXPECT_EQ(grid->hosts, 3);
    EXPECT_EQ(grid->per_host, 2);
    EXPECT_EQ(grid->own.host, 1);
    EXPECT_EQ(grid->own.local_index, 1);
    EXPECT_THAT(grid->members, ElementsAre(0, 3, 1, 4, 2, 5));
    EXPECT_EQ(grid->member(2, 0), 2);
    EXPECT_EQ(grid->local_member(0), 1);
    EXPECT_EQ(grid->peer_on(0), 3);
    EXPECT_EQ(grid->position_of(5).host, 2);
    EXPECT_EQ(grid->position_of(5).local_index, 1);
}

TEST(TeamHosts, UsesIndicesOfTheTeamAndNotPes) {
    const auto grid =
        host_grid_of(members_by_host(Members::listed({7, 1, 6, 0}), layout_of({0, 0, 0, 0, 1, 1, 1, 1})), 3);
    ASSERT_NE(grid, nullptr);
    EXPECT_THAT(grid->members, ElementsAre(0, 2, 1, 3)) << "the host of PE 7 comes first";
    EXPECT_EQ(grid->own.host, 1);
    EXPECT_EQ(grid->own.local_index, 1);
}

TEST(TeamHosts, AreNoneWhereTheyCannotHelp) {
    const HostLayout layout = layout_of({0, 0, 1, 1, 1});
    const auto grid_of = [&](const PeRange& pes) { return host_grid_of(members_by_host(pes, layout), 0); };
    EXPECT_EQ(grid_of({0, 1, 2}), nullptr) << "one host";
    EXPECT_EQ(grid_of({0, 1, 5}), nullptr) << "two and three members";
    EXPECT_NE(grid_of({0, 1, 4}), nullptr);
    EXPECT_NE(grid_of({0, 2, 2}), nullptr) << "one member on each";
}

}  // namespace
}  // namespace npushmem
