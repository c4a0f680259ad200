// SPDX-License-Identifier: BSD-3-Clause
#include "topology/report/describe.hpp"

#include <gmock/gmock.h>

#include "tests/fakes/machine_builder.hpp"
#include "topology/policy/assignment.hpp"

namespace npushmem::topology {
namespace {

using ::testing::AllOf;
using ::testing::HasSubstr;

TEST(DescribeMachine, PrintsThePciTrees) {
    MachineBuilder builder;
    builder.package(1, 2);
    const auto bridge = builder.bridge(builder.host_bridge(0));
    builder.accelerator(bridge, 256'000'000'000);
    builder.nic(bridge, "mlx5_0", {{1, PortState::active, 200'000'000'000}, {2, PortState::down, 0}});
    auto machine = builder.machine();
    machine.source = "a test";
    machine.notes = {"nothing is real"};
    EXPECT_EQ(describe(machine),
              "Machine (a test): 1 package, 1 NUMA node, 2 cores, 2 hardware threads\n"
              "  package 0    cpus 0-1  Synthetic CPU\n"
              "  NUMA node 0  cpus 0-1  1.0 GiB\n"
              "  host bridge 0000:[00-00]      NUMA node 0\n"
              "    bridge 0000:01:00.0         [0000:0000] class 0000\n"
              "      accelerator 0000:02:00.0  [0000:0000] class 1200, link 256 Gb/s\n"
              "      device 0000:03:00.0       [0000:0000] class 0207\n"
              "        NIC mlx5_0              verbs: port 1 active, 200 Gb/s; port 2 down\n"
              "  note: nothing is real\n");
}

TEST(DescribeMachine, ReportsThatThereIsNoNic) {
    MachineBuilder builder;
    builder.host_bridge(builder.package());
    EXPECT_THAT(describe(builder.machine()), HasSubstr("no NIC: transports within one host (self, p2p) need none\n"));
}

TEST(DescribeMachine, MarksDevicesThatWereNotRead) {
    auto machine = MachineBuilder{}.machine();
    machine.devices_known = false;
    EXPECT_THAT(describe(machine), HasSubstr("PCI devices: not read\n"));
}

TEST(DescribeMachine, ShowsNicsOutsideThePciForest) {
    MachineBuilder builder;
    builder.package();
    auto machine = builder.machine();
    machine.nics.push_back({"eth0", NicKind::network, std::nullopt, std::nullopt, {{}}});
    EXPECT_THAT(describe(machine), HasSubstr("  NIC eth0  network: port 1 state unknown\n"));
}

TEST(RateText, IsShort) {
    EXPECT_EQ(rate_text(200'000'000'000), "200 Gb/s");
    EXPECT_EQ(rate_text(2'500'000'000), "2.5 Gb/s");
    EXPECT_EQ(rate_text(0), "");
}

Assignment sample_assignment() {
    Assignment out;
    out.method = "balanced";
    out.notes = {"n2:1 is down and not used"};
    out.pes.push_back({0, "here", {{"n0", 1, 0, 0, DistanceClass::pix, 100'000'000'000, {}}}, "because"});
    out.pes.push_back(
        {10, "there", {{"n1", 1, 1, 1, DistanceClass::node, 0, {}}, {"n3", 2, 2, 2, DistanceClass::sys, 0, {}}}, "so"});
    return out;
}

TEST(DescribeAssignment, IsATableWithReasons) {
    EXPECT_EQ(describe(sample_assignment()),
              "NIC assignment (balanced): 2 PEs on 3 NIC ports\n"
              "  PE  NIC   path  rate      why\n"
              "  0   n0:1  PIX   100 Gb/s  because\n"
              "  10  n1:1  NODE  ?         so\n"
              "      n3:2  SYS   ?\n"
              "  PE  device\n"
              "  0   here\n"
              "  10  there\n"
              "  note: n2:1 is down and not used\n");
}

TEST(DescribeAssignment, PrintsAtMostTheGivenNumberOfLines) {
    EXPECT_EQ(describe(sample_assignment(), 1),
              "NIC assignment (balanced): 2 PEs on 3 NIC ports\n"
              "  PE  NIC   path  rate      why\n"
              "  0   n0:1  PIX   100 Gb/s  because\n"
              "  PE  device\n"
              "  0   here\n"
              "  ... and 1 PE more\n"
              "  note: n2:1 is down and not used\n");
}

Assignment eight_on_one_nic() {
    Assignment out;
    out.method = "balanced";
    for (std::uint32_t pe = 0; pe < 8; ++pe) {
        std::vector<std::uint32_t> others;
        for (std::uint32_t other = 0; other < 8; ++other)
            if (other != pe) others.push_back(other);
        const std::vector<NicChoice> nics{{"eth0", 1, 0, 0, DistanceClass::phb, 0, others}};
        out.pes.push_back({pe, pe % 4 == 0 ? "at the left" : "at the right", nics, reason_of(nics, {})});
    }
    return out;
}

TEST(DescribeAssignment, GivesEqualPesOneLine) {
    EXPECT_EQ(describe(eight_on_one_nic()),
              "NIC assignment (balanced): 8 PEs on 1 NIC port\n"
              "  PE   NIC     path  rate  why\n"
              "  0-7  eth0:1  PHB   ?     eth0:1 is the nearest, through the same host bridge (PHB), shared by 8 PEs\n"
              "  PE       device\n"
              "  0,4      at the left\n"
              "  1-3,5-7  at the right\n");
}

TEST(DescribeAssignment, KeepsLinesApartThatDifferInAnything) {
    Assignment mixed = eight_on_one_nic();
    mixed.pes[3].nics[0].bits_per_second = 1'000'000'000;
    mixed.pes[5].reason = "so";
    const std::string text = describe(mixed);
    EXPECT_THAT(text, ::testing::HasSubstr("\n  0-2,4,6-7  eth0:1"));
    EXPECT_THAT(text, ::testing::HasSubstr("\n  3          eth0:1  PHB   1 Gb/s"));
    EXPECT_THAT(text, ::testing::HasSubstr("\n  5          eth0:1  PHB   ?       so\n"));
}

TEST(DescribeAssignment, ReportsThatThereIsNoNic) {
    Assignment none;
    none.method = "none, because this host has no NIC";
    none.pes.push_back({0, "here", {}, "this host has no NIC"});
    EXPECT_EQ(describe(none),
              "NIC assignment: none, because this host has no NIC\n"
              "  transports within one host (self, p2p) need none\n"
              "  PE  device\n"
              "  0   here\n");
}

NicClaim one_claim() { return {{41, 900}, 5, 77, 3, 6, "0000:0f:00.0", "mlx5_2", 2, true, DistanceClass::pxb}; }

TEST(DescribeClaims, ShowsJobsTogetherAndFirstNicsFirst) {
    auto further = one_claim();
    further.first = false;
    further.nic = "mlx5_9";
    auto other = one_claim();
    other.job = 4;
    other.device.clear();
    const auto text = describe(std::vector{further, one_claim(), other}, one_claim().machine);
    EXPECT_THAT(text, AllOf(HasSubstr("in use by 2 jobs"), HasSubstr("mlx5_9:2 (further)"), HasSubstr("0000:0f:00.0")));
    EXPECT_LT(text.find("mlx5_2:2"), text.find("mlx5_9:2"));
    EXPECT_EQ(describe(std::vector<NicClaim>{}, one_claim().machine), "NICs in use by jobs on this host: none\n");
}

TEST(DescribeClaims, KeepsJobsThatSeeAnotherMachineApart) {
    auto other = one_claim();
    other.job = 4;
    other.machine = one_claim().machine + 1;
    other.nic = "mlx5_8";
    const auto text = describe(std::vector{other, one_claim()}, one_claim().machine);
    EXPECT_THAT(text, HasSubstr("in use by 1 job on this host:"));
    EXPECT_THAT(text,
                HasSubstr("NICs of other machines (topology files, emulated hosts), in use by 1 job on this host:"));
    EXPECT_LT(text.find("mlx5_2:2"), text.find("mlx5_8"));
    EXPECT_THAT(describe(std::vector{other}, one_claim().machine), HasSubstr("on this host: none\n"));
}

}  // namespace
}  // namespace npushmem::topology
