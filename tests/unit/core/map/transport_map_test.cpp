// SPDX-License-Identifier: BSD-3-Clause
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "core/map/transport_map.hpp"
#include "npushmem/testing/mocks.hpp"

namespace npushmem {

namespace {

MappingMatrix everybody(int pes) {
    return {static_cast<std::size_t>(pes), std::vector<bool>(static_cast<std::size_t>(pes), true)};
}

void cut(MappingMatrix& maps, int a, int b) {
    maps[static_cast<std::size_t>(a)][static_cast<std::size_t>(b)] = false;
    maps[static_cast<std::size_t>(b)][static_cast<std::size_t>(a)] = false;
}

TEST(Sharing, ContainsAllPesIfAllMapAll) { EXPECT_EQ(sharing_group(1, everybody(3)), (std::vector<int>{0, 1, 2})); }

TEST(Sharing, IsASingletonWithoutMappings) {
    MappingMatrix maps = everybody(3);
    cut(maps, 0, 1);
    cut(maps, 0, 2);
    cut(maps, 1, 2);
    for (const int me : {0, 1, 2}) EXPECT_EQ(sharing_group(me, maps), std::vector<int>{me});
}

TEST(Sharing, IsTheSetOfPesThatMapEachOther) {
    MappingMatrix maps = everybody(5);
    for (const int a : {0, 3, 4})
        for (const int b : {1, 2}) cut(maps, a, b);
    for (const int me : {0, 3, 4}) EXPECT_EQ(sharing_group(me, maps), (std::vector<int>{0, 3, 4}));
    for (const int me : {1, 2}) EXPECT_EQ(sharing_group(me, maps), (std::vector<int>{1, 2}));
}

// One link is down: all PEs agree on the sets.
TEST(Sharing, IsAPartitionIfAMappingIsMissing) {
    MappingMatrix maps = everybody(4);
    cut(maps, 0, 1);
    for (const int me : {0, 2, 3}) EXPECT_EQ(sharing_group(me, maps), (std::vector<int>{0, 2, 3}));
    EXPECT_EQ(sharing_group(1, maps), std::vector<int>{1});
}

TEST(Sharing, NeedsBothSides) {
    MappingMatrix maps = everybody(2);
    maps[1][0] = false;
    EXPECT_EQ(sharing_group(0, maps), std::vector<int>{0});
    EXPECT_EQ(sharing_group(1, maps), std::vector<int>{1});
}

}  // namespace

namespace {

using ::testing::_;
using ::testing::HasSubstr;
using ::testing::NiceMock;
using ::testing::Return;

npushmem_peer peer_of(int, int pe) { return {sizeof(npushmem_peer), pe, {}, 0, 0, nullptr, "host"}; }

HostLayout hosts_of(const std::vector<int>& host_of_pe) {
    std::vector<npushmem_host_id> ids(host_of_pe.size());
    for (std::size_t i = 0; i < ids.size(); ++i) ids[i].machine = static_cast<std::uint64_t>(host_of_pe[i]);
    return HostLayout(ids);
}

// Reaches the PEs for which `good` is true.
template <class Good>
void reaches(MockTransport& transport, std::uint64_t capabilities, const char* why, Good good) {
    ON_CALL(transport, reach(_)).WillByDefault([=](const npushmem_peer& peer) {
        return good(peer.pe) ? Reach{capabilities, 0, 0, why} : Reach{0, 0, 0, std::string("not ") + why};
    });
}

class TransportMapTest : public ::testing::Test {
protected:
    NiceMock<MockTransport> self, local, remote;
    std::vector<NamedTransport> named{{"self", &self}, {"local", &local}, {"remote", &remote}};
};

TEST_F(TransportMapTest, TheFirstThatReachesWins) {
    const HostLayout layout = hosts_of({0, 0, 1, 1});
    reaches(self, NPUSHMEM_CAP_MAP, "the PE itself", [](int pe) { return pe == 1; });
    reaches(local, NPUSHMEM_CAP_MAP | NPUSHMEM_CAP_PUT, "same host", [](int pe) { return pe < 2; });
    reaches(remote, NPUSHMEM_CAP_PUT, "by network", [](int) { return true; });
    auto map = TransportMap::build(named, layout, 1, peer_of);
    ASSERT_TRUE(map.ok()) << map.status().message();
    EXPECT_EQ(map.value().route(0).transport, 1);
    EXPECT_EQ(map.value().route(1).transport, 0);
    EXPECT_EQ(map.value().route(2).transport, 2);
    EXPECT_TRUE(map.value().route(0).maps());
    EXPECT_FALSE(map.value().route(3).maps());
    EXPECT_EQ(map.value().transports_in_use(), 7U);
    EXPECT_EQ(map.value().describe(),
              "pe 0: local, mapped (same host)\npe 1: self, mapped (the PE itself)\npe 2-3: remote (by network)\n");
}

TEST_F(TransportMapTest, DescribesPesWithDifferentReasonsSeparately) {
    const HostLayout layout = hosts_of({0, 1, 1, 1});
    ON_CALL(remote, reach(_)).WillByDefault([](const npushmem_peer& peer) {
        return Reach{NPUSHMEM_CAP_PUT, 0, 0, peer.pe == 0 ? "near" : peer.pe == 3 ? "rail 3" : "rail 1"};
    });
    auto map = TransportMap::build(named, layout, 0, peer_of);
    ASSERT_TRUE(map.ok());
    EXPECT_EQ(map.value().describe(), "pe 0: remote (near)\npe 1-2: remote (rail 1)\npe 3: remote (rail 3)\n");
    EXPECT_EQ(&map.value().route(1), &map.value().route(3)) << "nothing is kept for each PE";
}

TEST_F(TransportMapTest, HasARangeWithItsReasonForEveryPe) {
    const HostLayout layout = hosts_of({0, 1, 1, 1});
    ON_CALL(remote, reach(_)).WillByDefault([](const npushmem_peer& peer) {
        return Reach{NPUSHMEM_CAP_PUT, 0, 0, peer.pe == 0 ? "near" : peer.pe == 3 ? "rail 3" : "rail 1"};
    });
    auto map = TransportMap::build(named, layout, 0, peer_of);
    ASSERT_TRUE(map.ok());
    ASSERT_EQ(map.value().ranges().size(), 3U);
    const int first_of[] = {0, 1, 1, 3};
    const int last_of[] = {0, 2, 2, 3};
    const char* const reason_of[] = {"near", "rail 1", "rail 1", "rail 3"};
    for (int pe = 0; pe < 4; ++pe) {
        const RouteRange& range = map.value().range_of(pe);
        EXPECT_EQ(range.first, first_of[pe]);
        EXPECT_EQ(range.last, last_of[pe]);
        EXPECT_EQ(range.route.transport, 2);
        EXPECT_EQ(range.route.reach.why, reason_of[pe]);
    }
}

// The text does not show capabilities.
TEST_F(TransportMapTest, RangesDifferInCapabilitiesAlthoughTheirLinesAreEqual) {
    const HostLayout layout = hosts_of({0, 1, 2});
    ON_CALL(remote, reach(_)).WillByDefault([](const npushmem_peer& peer) {
        return Reach{NPUSHMEM_CAP_PUT | (peer.pe == 1 ? NPUSHMEM_CAP_ATOMIC : 0), 0, 0, "by network"};
    });
    auto map = TransportMap::build(named, layout, 0, peer_of);
    ASSERT_TRUE(map.ok());
    EXPECT_EQ(map.value().ranges().size(), 3U);
    EXPECT_TRUE(map.value().range_of(1).route.reach.has(NPUSHMEM_CAP_ATOMIC));
    EXPECT_FALSE(map.value().range_of(2).route.reach.has(NPUSHMEM_CAP_ATOMIC));
    EXPECT_EQ(map.value().describe(), "pe 0-2: remote (by network)\n");
}

TEST_F(TransportMapTest, TellsTheEstimatedTimeOfAPath) {
    const HostLayout layout = hosts_of({0, 1});
    ON_CALL(remote, reach(_)).WillByDefault([](const npushmem_peer& peer) {
        return Reach{NPUSHMEM_CAP_PUT, 0, 0, "far", 2'000, peer.pe == 0 ? 0U : 4'096'000'000U};
    });
    auto map = TransportMap::build(named, layout, 0, peer_of);
    ASSERT_TRUE(map.ok());
    EXPECT_EQ(map.value().describe(),
              "pe 0: remote (far, about 2.0 us for 4 KiB)\npe 1: remote (far, about 3.0 us for 4 KiB)\n");
    EXPECT_EQ(estimated_ns(Reach{NPUSHMEM_CAP_PUT, 0, 0, "unknown", 0, 1'000}), 0) << "no latency, no estimate";
}

TEST_F(TransportMapTest, PesOfOneHostMayDiffer) {
    const HostLayout layout = hosts_of({0, 0, 0, 0});
    reaches(local, NPUSHMEM_CAP_MAP, "same host", [](int pe) { return pe != 2; });
    reaches(remote, NPUSHMEM_CAP_PUT, "by network", [](int) { return true; });
    auto map = TransportMap::build(named, layout, 0, peer_of);
    ASSERT_TRUE(map.ok());
    EXPECT_EQ(map.value().route(1).transport, 1);
    EXPECT_EQ(map.value().route(2).transport, 2);
    EXPECT_EQ(map.value().route(3).transport, 1);
}

TEST_F(TransportMapTest, AnUnreachablePeListsEveryTransportWithItsReason) {
    const HostLayout layout = hosts_of({0, 1, 2});
    reaches(self, NPUSHMEM_CAP_MAP, "the PE itself", [](int pe) { return pe == 0; });
    reaches(local, NPUSHMEM_CAP_MAP, "on this host", [](int pe) { return pe == 0; });
    reaches(remote, NPUSHMEM_CAP_PUT, "cabled", [](int) { return false; });
    const auto map = TransportMap::build(named, layout, 0, peer_of);
    EXPECT_EQ(map.status().code(), Code::unreachable);
    EXPECT_EQ(
        map.status().message(),
        "PE 1 cannot be reached from PE 0 by any transport:\n  self: not the PE itself\n  local: not on this host\n"
        "  remote: not cabled\n  (1 more PEs likewise)\n"
        "  select other transports with NPUSHMEM_TRANSPORTS or NPUSHMEM_REMOTE_TRANSPORT");
}

TEST_F(TransportMapTest, ReportsAnEmptySelection) {
    const HostLayout layout = hosts_of({0});
    EXPECT_THAT(TransportMap::build({}, layout, 0, peer_of).status().message(), HasSubstr("none was selected"));
}

}  // namespace

}  // namespace npushmem
