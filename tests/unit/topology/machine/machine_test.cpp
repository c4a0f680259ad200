// SPDX-License-Identifier: BSD-3-Clause
#include "topology/machine/machine.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "tests/fakes/machine_builder.hpp"

namespace npushmem::topology {
namespace {

TEST(DescribeCpus, JoinsRuns) {
    EXPECT_EQ(describe(CpuSet{0, 1, 2, 3, 8}), "0-3,8");
    EXPECT_EQ(describe(CpuSet{5}), "5");
    EXPECT_EQ(describe(CpuSet{0, 2, 4}), "0,2,4");
    EXPECT_EQ(describe(CpuSet{}), "none");
}

TEST(IsAccelerator, GoesByClassThenVendor) {
    EXPECT_TRUE(is_accelerator(0x1200, 0x1234));
    EXPECT_TRUE(is_accelerator(0x0302, 0x10de));
    EXPECT_FALSE(is_accelerator(0x0302, 0x1234));
    EXPECT_FALSE(is_accelerator(0x0200, 0x10de));
}

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

TEST(NumaDistance, UsesDefaultsWithoutFirmwareTables) {
    MachineBuilder builder;
    builder.package(2);
    builder.package(1);
    const auto& machine = builder.machine();
    EXPECT_EQ(numa_distance(machine, 0, 0), 10u);
    EXPECT_EQ(numa_distance(machine, 0, 1), 12u);
    EXPECT_EQ(numa_distance(machine, 0, 2), 21u);
}

TEST(NumaDistance, PrefersTheTablesOfTheFirmware) {
    MachineBuilder builder;
    builder.package(2);
    builder.numa_distances({{10, 32}, {31, 10}});
    EXPECT_EQ(numa_distance(builder.machine(), 0, 1), 32u);
    EXPECT_EQ(numa_distance(builder.machine(), 1, 0), 31u);
}

TEST(NaturalLess, CountsNumbersAsNumbers) {
    EXPECT_TRUE(natural_less("mlx5_2", "mlx5_10"));
    EXPECT_FALSE(natural_less("mlx5_10", "mlx5_2"));
    EXPECT_TRUE(natural_less("eth0", "mlx5_0"));
    EXPECT_TRUE(natural_less("mlx5", "mlx5_0"));
}

TEST(NaturalLess, HandlesNumbersLongerThanAnyInteger) {
    EXPECT_TRUE(natural_less("n99999999999999999999998", "n99999999999999999999999"));
    EXPECT_TRUE(natural_less("n9", "n10000000000000000000000"));
}

TEST(NaturalLess, IsStrict) {
    EXPECT_FALSE(natural_less("mlx5_1", "mlx5_1"));
    EXPECT_NE(natural_less("x01", "x1"), natural_less("x1", "x01"));
}

}  // namespace
}  // namespace npushmem::topology
