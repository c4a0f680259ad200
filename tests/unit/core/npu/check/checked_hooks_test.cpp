// Checked mode on a device: what a program gets with NPUSHMEM_NPU_CHECK=1.
#include "npushmem/npu/checked_hooks.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "tests/fakes/array_fabric.hpp"

namespace npushmem::npu {
namespace {

using fakes::ArrayFabric;
using fakes::ArrayPe;
using fakes::on_all_pes;
using fakes::SymmetricArray;
using testing::HasSubstr;

DeviceConfig checked(const Fabric& fabric, const char* schedule) {
    DeviceConfig config{.blocks = 4, .vector_cores = 2, .launch_timeout = std::chrono::seconds(60)};
    config.hooks = checked_hooks(Schedule::parse(schedule).value(), fabric).value();
    return config;
}

TEST(CheckedDevice, ALaunchWithAHazardFailsWithTheFindings) {
    for (const char* schedule : {"eager", "lazy", "random:4"}) {
        SymmetricArray array(1, 4096);
        const ArrayFabric fabric(array, 0);
        const ArrayPe pe(array, 0, checked(fabric, schedule));
        auto* values = array.at<float>(0);
        const auto add = [&](bool flag) {
            return pe.run(1, [&](Core& core) {
                const auto tile = core.ub_alloc<float>(64);
                core.data_copy(tile, gm(values, 64), 64);
                if (flag) core.pipe_barrier<Pipe::all>();
                core.add(tile, tile, tile, 64);
            });
        };
        const Status wrong = add(false);
        EXPECT_EQ(wrong.code(), Code::protocol);
        EXPECT_THAT(wrong.message(), HasSubstr("H4 in this launch: reads what another pipe may still be writing"));
        EXPECT_THAT(wrong.message(), HasSubstr("checked_hooks_test.cpp:"));
        const Status right = add(true);
        EXPECT_TRUE(right.ok()) << right.message();
    }
}

TEST(CheckedDevice, RefusesToExplore) {
    SymmetricArray array(1, 4096);
    const ArrayFabric fabric(array, 0);
    const auto hooks = checked_hooks(Schedule::parse("explore").value(), fabric);
    EXPECT_EQ(hooks.status().code(), Code::config);
    EXPECT_THAT(hooks.status().message(), HasSubstr("all PEs in one process"));
}

// Each PE checks for itself; what one puts off, the others need not wait for.
TEST(CheckedDevice, BarriersBetweenDevicesPass) {
    constexpr int pes = 3;
    for (const char* schedule : {"eager", "lazy", "random:5"}) {
        SymmetricArray array(pes, 2 * sizeof(BarrierState));
        on_all_pes(pes, [&](int me) {
            const ArrayFabric fabric(array, me);
            const ArrayPe pe(array, me, checked(fabric, schedule));
            for (const char* text : {"v1", "v2:3", "v3"}) {
                const BarrierChoice choice = BarrierChoice::parse(text).value();
                const Status status = pe.run(2, [&](Core& core) {
                    for (int round = 0; round < 10; ++round) {
                        sync_by(core, choice, {0, 1, pes}, array.at<BarrierState>(me));
                    }
                });
                EXPECT_TRUE(status.ok()) << text << " " << schedule << ": " << status.message();
            }
        });
    }
}

TEST(Schedules, ParsePrintAndRefuse) {
    for (const char* text : {"eager", "lazy", "random:17", "explore:3"}) {
        EXPECT_EQ(Schedule::parse(text).value().text(), text);
    }
    EXPECT_EQ(Schedule::parse("explore").value().deferrals, 1);
    for (const char* text : {"", "Eager", "random", "random:", "random:x", "explore:", "explore:9", "eager:1"}) {
        EXPECT_EQ(Schedule::parse(text).status().code(), Code::config) << text;
    }
}

}  // namespace
}  // namespace npushmem::npu
