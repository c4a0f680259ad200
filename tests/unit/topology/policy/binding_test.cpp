// SPDX-License-Identifier: BSD-3-Clause
#include "topology/policy/binding.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <sched.h>
#include <numeric>
#include <set>

#include "tests/fakes/machine_builder.hpp"
#include "tests/fakes/topologies.hpp"

namespace npushmem::topology {
namespace {

using ::testing::AllOf;
using ::testing::ElementsAre;
using ::testing::HasSubstr;

std::set<int> own_cpus() {
    cpu_set_t set;
    std::set<int> out;
    if (::sched_getaffinity(0, sizeof set, &set) != 0) return out;
    for (int cpu = 0; cpu < CPU_SETSIZE; ++cpu)
        if (CPU_ISSET(cpu, &set)) out.insert(cpu);
    return out;
}

TEST(AllowedUnits, EveryKindCoversWhatTheProcessMayUse) {
    for (const BindUnit unit : {BindUnit::core, BindUnit::hwthread, BindUnit::numa}) {
        const auto units = allowed_units(unit);
        ASSERT_TRUE(units.ok()) << units.status().message();
        std::set<int> all;
        for (const auto& cpus : units.value()) {
            EXPECT_FALSE(cpus.empty());
            for (const int cpu : cpus) EXPECT_TRUE(all.insert(cpu).second) << "cpu " << cpu << " twice";
        }
        EXPECT_EQ(all, own_cpus());
    }
}

TEST(AllowedUnits, AHardwareThreadIsOneCpu) {
    const auto units = allowed_units(BindUnit::hwthread);
    ASSERT_TRUE(units.ok());
    for (const auto& cpus : units.value()) EXPECT_EQ(cpus.size(), 1U);
}

CpuSet cpus(unsigned first, unsigned last) {
    CpuSet out(last - first + 1);
    std::iota(out.begin(), out.end(), first);
    return out;
}

TEST(CpusNearDevices, ShareTheCoresOfTheDevicesNode) {
    const auto near = cpus_near_devices(machine_from("nics-on-one-socket"), 4, cpus(0, 7));
    ASSERT_TRUE(near.ok()) << near.status().message();
    EXPECT_THAT(near.value(), ElementsAre(ElementsAre(0, 2), ElementsAre(1, 3), ElementsAre(4, 6), ElementsAre(5, 7)));
}

TEST(CpusNearDevices, AreReusedInTurnIfThereAreMoreNpusThanCores) {
    const auto near = cpus_near_devices(machine_from("flat-vm"), 3, cpus(0, 3));
    ASSERT_TRUE(near.ok()) << near.status().message();
    EXPECT_THAT(near.value(), ElementsAre(ElementsAre(0, 2), ElementsAre(1, 3), ElementsAre(0, 2)));
}

TEST(CpusNearDevices, StayWithinWhatTheUserAllows) {
    const auto near = cpus_near_devices(machine_from("nics-on-one-socket"), 4, {1, 2, 5});
    ASSERT_TRUE(near.ok()) << near.status().message();
    EXPECT_THAT(near.value(), ElementsAre(ElementsAre(2), ElementsAre(1), ElementsAre(5), ElementsAre(5)));
}

TEST(CpusNearDevices, FailIfTheNearCpusAreNotAllowed) {
    const auto near = cpus_near_devices(machine_from("nics-on-one-socket"), 4, cpus(0, 3));
    ASSERT_FALSE(near.ok());
    EXPECT_EQ(near.status().code(), Code::config);
    EXPECT_THAT(near.status().message(),
                AllOf(HasSubstr("the device of PE 2 is near NUMA node 1, cpus 4-7"), HasSubstr("it may use cpus 0-3")));
}

TEST(CpusNearDevices, AreThoseNearTheNicIfThePlaceOfTheDeviceIsUnknown) {
    MachineBuilder builder;
    (void)builder.package(1, 2);
    const auto second = builder.package(1, 2);
    builder.accelerator(builder.host_bridge(std::nullopt));
    builder.nic(builder.host_bridge(second), "mlx5_0");
    const auto near = cpus_near_devices(builder.machine(), 1, cpus(0, 3));
    ASSERT_TRUE(near.ok()) << near.status().message();
    EXPECT_THAT(near.value(), ElementsAre(ElementsAre(2, 3)));
}

TEST(CpusNearDevices, AreAllCpusIfNoPlaceIsKnown) {
    MachineBuilder builder;
    (void)builder.package(1, 2);
    builder.accelerator(builder.host_bridge(std::nullopt));
    const auto near = cpus_near_devices(builder.machine(), 1, cpus(0, 1));
    ASSERT_TRUE(near.ok()) << near.status().message();
    EXPECT_THAT(near.value(), ElementsAre(ElementsAre(0, 1)));
}

}  // namespace
}  // namespace npushmem::topology
