// SPDX-License-Identifier: BSD-3-Clause
#include "topology/machine/place.hpp"

#include <gmock/gmock.h>

#include "tests/fakes/machine_builder.hpp"

namespace npushmem::topology {
namespace {

using ::testing::ElementsAre;
using ::testing::SizeIs;

TEST(PlaceEmulated, PlacesNpusAtAccelerators) {
    MachineBuilder builder;
    const auto host = builder.host_bridge(builder.package(1, 2));
    const auto first = builder.accelerator(host);
    const auto second = builder.accelerator(host);
    const auto places = place_emulated(builder.machine(), 3);
    ASSERT_THAT(places, SizeIs(3));
    EXPECT_EQ(places[0].location.pci, first);
    EXPECT_EQ(places[1].location.pci, second);
    EXPECT_EQ(places[2].location.pci, first);
    EXPECT_EQ(places[0].why, "emulated, stands in for accelerator 0000:01:00.0");
    EXPECT_THAT(places[0].cpus, ElementsAre(0));
    EXPECT_THAT(places[1].cpus, ElementsAre(1));
    EXPECT_THAT(places[2].cpus, ElementsAre(0));
}

TEST(PlaceEmulated, TakesHostBridgesOfDifferentNodesInTurn) {
    MachineBuilder builder;
    builder.package(1, 2);
    builder.package(1, 2);
    const auto near_a = builder.host_bridge(0);
    const auto near_b = builder.host_bridge(0);
    const auto far = builder.host_bridge(1);
    const auto places = place_emulated(builder.machine(), 4);
    EXPECT_EQ(places[0].location.pci, near_a);
    EXPECT_EQ(places[1].location.pci, far);
    EXPECT_EQ(places[2].location.pci, near_b);
    EXPECT_EQ(places[3].location.pci, near_a);
    EXPECT_THAT(places[0].cpus, ElementsAre(0));
    EXPECT_THAT(places[1].cpus, ElementsAre(2));
    EXPECT_THAT(places[2].cpus, ElementsAre(1));
    EXPECT_EQ(places[1].why, "emulated, at host bridge 0000:[02-02] of NUMA node 1");
}

TEST(PlaceEmulated, FallsBackToNumaNodes) {
    MachineBuilder builder;
    builder.package(2);
    const auto places = place_emulated(builder.machine(), 3);
    EXPECT_EQ(places[0].location.numa, 0u);
    EXPECT_EQ(places[1].location.numa, 1u);
    EXPECT_EQ(places[2].location.numa, 0u);
    EXPECT_EQ(places[1].why, "emulated, at NUMA node 1");
}

TEST(PlaceEmulated, LeavesPlacesUnknownOnAnUnknownMachine) {
    const auto places = place_emulated(Machine{}, 2);
    ASSERT_THAT(places, SizeIs(2));
    EXPECT_FALSE(places[0].location.pci || places[0].location.numa);
}

}  // namespace
}  // namespace npushmem::topology
