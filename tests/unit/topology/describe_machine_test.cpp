#include <gmock/gmock.h>

#include "tests/fakes/machine_builder.hpp"
#include "topology/describe.hpp"

namespace npushmem::topology {
namespace {

using ::testing::HasSubstr;

TEST(DescribeMachine, DrawsTheForest) {
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

TEST(DescribeMachine, SaysPlainlyThatThereIsNoNic) {
    MachineBuilder builder;
    builder.host_bridge(builder.package());
    EXPECT_THAT(describe(builder.machine()), HasSubstr("no NIC: transports within one host (self, p2p) need none\n"));
}

TEST(DescribeMachine, DoesNotClaimToKnowWhatItDidNotLookFor) {
    auto machine = MachineBuilder{}.machine();
    machine.devices_known = false;
    EXPECT_THAT(describe(machine), HasSubstr("PCI devices: not looked for\n"));
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

}  // namespace
}  // namespace npushmem::topology
