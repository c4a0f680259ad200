#include "topology/binding.hpp"

#include <gtest/gtest.h>
#include <sched.h>

#include <set>

namespace npushmem::topology {
namespace {

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

}  // namespace
}  // namespace npushmem::topology
