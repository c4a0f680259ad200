// SPDX-License-Identifier: BSD-3-Clause
#include "topology/machine/distance.hpp"

#include <gmock/gmock.h>

#include "tests/fakes/machine_builder.hpp"
#include "tests/fakes/topologies.hpp"

namespace npushmem::topology {
namespace {

Location at(const Machine& machine, const std::string& address) {
    const auto pci = find_pci(machine, address);
    EXPECT_TRUE(pci) << address;
    return pci ? Location{pci, machine.pci[*pci].numa} : Location{};
}

DistanceClass class_between(const Machine& machine, const std::string& a, const std::string& b) {
    const auto forth = distance(machine, at(machine, a), at(machine, b));
    EXPECT_EQ(forth, distance(machine, at(machine, b), at(machine, a))) << "not symmetric";
    return forth.distance_class;
}

TEST(DistanceOnSwitchPairs, GrowsWithThePath) {
    const auto machine = machine_from("switch-pairs");
    EXPECT_EQ(class_between(machine, "03:00.0", "05:00.0"), DistanceClass::pix);
    EXPECT_EQ(class_between(machine, "03:00.0", "15:00.0"), DistanceClass::node);
    EXPECT_EQ(class_between(machine, "03:00.0", "85:00.0"), DistanceClass::sys);
}

TEST(DistanceOnCascadedSwitches, DistinguishesOneSwitchFromSeveral) {
    const auto machine = machine_from("cascaded-switches");
    EXPECT_EQ(class_between(machine, "04:00.0", "03:00.0"), DistanceClass::pix);
    EXPECT_EQ(class_between(machine, "04:00.0", "08:00.0"), DistanceClass::pxb);
    EXPECT_EQ(class_between(machine, "07:00.0", "08:00.0"), DistanceClass::pix);
    EXPECT_EQ(class_between(machine, "07:00.0", "03:00.0"), DistanceClass::pxb);
}

TEST(DistanceOnOtherMachines, PathsJoinAtHostBridges) {
    EXPECT_EQ(class_between(machine_from("flat-vm"), "00:04.0", "00:08.0"), DistanceClass::phb);
    const auto machine = machine_from("nics-on-one-socket");
    EXPECT_EQ(class_between(machine, "01:00.0", "02:00.0"), DistanceClass::phb);
    EXPECT_EQ(class_between(machine, "01:00.0", "12:00.0"), DistanceClass::node);
    EXPECT_EQ(class_between(machine, "81:00.0", "02:00.0"), DistanceClass::sys);
}

TEST(Distance, OfFunctionsOfOneDeviceIsPix) {
    MachineBuilder builder;
    const auto root_port = builder.bridge(builder.host_bridge(builder.package()));
    const auto accelerator = builder.accelerator(root_port);
    const auto nic = builder.nic(root_port, "n0");
    EXPECT_EQ(distance(builder.machine(), {accelerator, 0}, {nic, 0}).distance_class, DistanceClass::pix);
    EXPECT_EQ(distance(builder.machine(), {nic, 0}, {nic, 0}).distance_class, DistanceClass::pix);
}

TEST(Distance, BetweenHostBridgesOfUnknownNodesIsFar) {
    MachineBuilder builder;
    builder.package(2);
    const auto a = builder.accelerator(builder.host_bridge(std::nullopt));
    const auto b = builder.nic(builder.host_bridge(std::nullopt), "n0");
    EXPECT_EQ(distance(builder.machine(), {a, std::nullopt}, {b, std::nullopt}).distance_class, DistanceClass::sys);
}

TEST(Distance, WithoutPciGoesByNumaNode) {
    MachineBuilder builder;
    builder.package(2);
    const auto nic = builder.nic(builder.host_bridge(0), "n0");
    const auto& machine = builder.machine();
    EXPECT_EQ(distance(machine, {std::nullopt, 0}, {nic, 0}).distance_class, DistanceClass::node);
    EXPECT_EQ(distance(machine, {std::nullopt, 1}, {nic, 0}).distance_class, DistanceClass::sys);
    EXPECT_EQ(distance(machine, {}, {nic, 0}).distance_class, DistanceClass::sys);
}

TEST(Distance, KeepsTheNarrowestKnownLink) {
    MachineBuilder builder;
    const auto host = builder.host_bridge(builder.package());
    const auto fast = builder.accelerator(host, 256);
    const auto slow = builder.nic(host, "n0", {{}}, NicKind::rdma, 64);
    const auto unknown = builder.nic(host, "n1");
    const auto& machine = builder.machine();
    EXPECT_EQ(distance(machine, {fast, 0}, {slow, 0}).bits_per_second, 64u);
    EXPECT_EQ(distance(machine, {fast, 0}, {unknown, 0}).bits_per_second, 256u);
}

TEST(Distance, OrdersByClassThenBandwidthThenNuma) {
    const Distance near{DistanceClass::pix, 10, 10};
    EXPECT_LT(near, (Distance{DistanceClass::pxb, 1000, 10}));
    EXPECT_LT((Distance{DistanceClass::pix, 20, 20}), near);
    EXPECT_LT(near, (Distance{DistanceClass::pix, 10, 11}));
    EXPECT_LT(near, (Distance{DistanceClass::pix, 0, 10})) << "an unknown bandwidth counts as low";
}

TEST(DistanceClassNames, AreThoseOfOtherTools) {
    EXPECT_EQ(name_of(DistanceClass::pix), "PIX");
    EXPECT_EQ(name_of(DistanceClass::pxb), "PXB");
    EXPECT_EQ(name_of(DistanceClass::phb), "PHB");
    EXPECT_EQ(name_of(DistanceClass::node), "NODE");
    EXPECT_EQ(name_of(DistanceClass::sys), "SYS");
}

TEST(RankDistances, RanksEqualDistancesEqually) {
    const Distance near{DistanceClass::pix, 200, 10};
    const Distance slower{DistanceClass::pix, 100, 10};
    const Distance far{DistanceClass::sys, 400, 21};
    const auto table = rank_distances({{far, near}, {slower, near}});
    EXPECT_EQ(table[0][0].rank, 2u);
    EXPECT_EQ(table[0][1].rank, 0u);
    EXPECT_EQ(table[1][0].rank, 1u);
    EXPECT_EQ(table[1][1].rank, 0u);
    EXPECT_EQ(table[0][0].distance_class, DistanceClass::sys);
}

TEST(NearestClass, IsTheBestOfTheRow) {
    EXPECT_EQ(nearest_class(table_of_classes({{3, 1, 4}})[0]), DistanceClass::pxb);
    EXPECT_EQ(nearest_class({}), DistanceClass::sys);
}

}  // namespace
}  // namespace npushmem::topology
