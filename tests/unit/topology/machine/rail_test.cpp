// SPDX-License-Identifier: BSD-3-Clause
#include "topology/machine/rail.hpp"

#include <gmock/gmock.h>

#include <cstring>
#include <string_view>

#include "tests/fakes/machine_builder.hpp"
#include "tests/fakes/topologies.hpp"

namespace npushmem::topology {
namespace {

using ::testing::ElementsAre;
using ::testing::SizeIs;

npushmem_device device(const char* name, unsigned port, const char* address, unsigned state = NPUSHMEM_PORT_ACTIVE) {
    npushmem_device out{};
    out.struct_size = sizeof out;
    out.port = port;
    out.state = state;
    out.bits_per_second = 100;
    // Not strncpy: a full name has no terminator, and one test needs that.
    (void)std::string_view(name).copy(out.name, sizeof out.name);
    (void)std::string_view(address).copy(out.pci_address, sizeof out.pci_address);
    return out;
}

TEST(RailsOfDevices, AreFoundByAddressThenByName) {
    const auto machine = machine_from("flat-vm");
    const npushmem_device devices[] = {device("any", 1, "0000:00:08.0"), device("mlx5_1", 2, ""),
                                       device("other", 1, "")};
    const auto rails = rails_of(machine, devices);
    ASSERT_THAT(rails, SizeIs(3));
    EXPECT_EQ(rails[0].location.pci, find_pci(machine, "0000:00:08.0"));
    EXPECT_EQ(rails[1].location.pci, find_pci(machine, "0000:00:09.0"));
    EXPECT_FALSE(rails[2].location.pci || rails[2].location.numa);
    EXPECT_EQ(name_of(rails[1]), "mlx5_1:2");
    EXPECT_EQ(rails[1].bits_per_second, 100u);
}

TEST(RailsOfDevices, KeepTheStateAndNamesOfMaximumLength) {
    const std::string full(sizeof npushmem_device{}.name, 'x');
    const npushmem_device devices[] = {device(full.c_str(), 1, "", NPUSHMEM_PORT_DOWN)};
    const auto rails = rails_of(Machine{}, devices);
    EXPECT_EQ(rails[0].nic, full);
    EXPECT_EQ(rails[0].state, PortState::down);
}

TEST(RailNumbers, AreTheUsersThenTheTransportsThenThePosition) {
    npushmem_device reported = device("b", 1, "");
    reported.rail = 6;  // one more than its number
    const npushmem_device devices[] = {device("a", 1, ""), reported, device("c", 1, "")};
    const auto rails = rails_of(Machine{}, devices);
    EXPECT_THAT(rail_numbers(rails, "").value(), ElementsAre(0U, 5U, 2U));
    EXPECT_THAT(rail_numbers(rails, "b=9,c=1").value(), ElementsAre(0U, 9U, 1U));
}

TEST(RailsOfMachine, AreVerbsPortsOrElseNetworkInterfaces) {
    const auto rails = rails_of(machine_from("cascaded-switches"));
    ASSERT_THAT(rails, SizeIs(3));
    EXPECT_EQ(name_of(rails[1]), "mlx5_0:2");
    EXPECT_THAT(rails_of(machine_from("network-only")), SizeIs(2));
    MachineBuilder builder;
    const auto host = builder.host_bridge(builder.package());
    builder.nic(host, "mlx5_0");
    builder.nic(host, "ens1", {{}}, NicKind::network);
    EXPECT_THAT(rails_of(builder.machine()), SizeIs(1));
}

}  // namespace
}  // namespace npushmem::topology
