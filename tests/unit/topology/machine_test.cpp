#include "topology/machine.hpp"

#include <gmock/gmock.h>

#include "tests/fakes/machine_builder.hpp"

namespace npushmem::topology {
namespace {

TEST(FindPci, AcceptsShortAndUpperCaseAddresses) {
    MachineBuilder builder;
    const auto bridge = builder.host_bridge(builder.package());
    for (int i = 0; i < 11; ++i) builder.accelerator(bridge);
    const auto& machine = builder.machine();
    EXPECT_EQ(find_pci(machine, "0000:0b:00.0"), machine.pci.size() - 1);
    EXPECT_EQ(find_pci(machine, "0B:00.0"), machine.pci.size() - 1);
    EXPECT_EQ(find_pci(machine, "0000:0c:00.0"), std::nullopt);
    EXPECT_EQ(find_pci(machine, ""), std::nullopt);
}

TEST(NumaDistance, AssumesWhatFirmwareDoesNotSay) {
    MachineBuilder builder;
    builder.package(2);
    builder.package(1);
    const auto& machine = builder.machine();
    EXPECT_EQ(numa_distance(machine, 0, 0), 10u);
    EXPECT_EQ(numa_distance(machine, 0, 1), 12u);
    EXPECT_EQ(numa_distance(machine, 0, 2), 21u);
}

TEST(NumaDistance, PrefersWhatFirmwareSays) {
    MachineBuilder builder;
    builder.package(2);
    builder.numa_distances({{10, 32}, {31, 10}});
    EXPECT_EQ(numa_distance(builder.machine(), 0, 1), 32u);
    EXPECT_EQ(numa_distance(builder.machine(), 1, 0), 31u);
}

}  // namespace
}  // namespace npushmem::topology
