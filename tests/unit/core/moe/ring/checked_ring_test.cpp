// SPDX-License-Identifier: BSD-3-Clause
// The ring's kernels in checked mode: no finding under any schedule, and one finding for each dropped flag.
#include <gmock/gmock.h>

#include "npushmem/npu/checked_job.hpp"
#include "tests/unit/core/moe/ring/ring_kernels.hpp"

namespace npushmem::moe {
namespace {

using npu::CheckedJob;
using npu::CheckReport;
using npu::Hazard;
using npu::Schedule;
using ring_test::Dropped;
using ring_test::Exchange;
using ring_test::Script;
using ring_test::total;

constexpr RingShape checked_shape{Bytes{96}, Bytes{64}, Bytes{32}};
constexpr int pes = 2;

CheckReport run(const char* schedule, const Script& script, Dropped dropped = Dropped::nothing,
                RingPlace place = RingPlace::receiver) {
    npu::CheckedJobConfig config{.pes = pes, .heap_bytes = 64 * 1024, .schedule = Schedule::parse(schedule).value()};
    config.device.blocks = 1;
    config.device.launch_timeout = std::chrono::seconds(60);
    const auto job = CheckedJob::create(config).value();
    const RingLayout layout(pes, checked_shape, place);
    auto* region = job->allocate<std::byte>(layout.total().value());
    auto* x = job->allocate<std::byte>(1024);
    auto* out = job->allocate<std::byte>(1024);
    for (int pe = 0; pe < pes; ++pe) {
        for (int i = 0; i < 1024; ++i) job->at(pe, x)[i] = static_cast<std::byte>(pe * 7 + i * 3 + i / 256);
    }
    npu::LaunchConfig launch(1);
    launch.name = "ring";
    CheckReport report = job->run(launch, [&](npu::Core& core) {
        const int me = core.my_pe();
        ring_test::exchange(core, {{job->at(me, region), layout}, job->at(me, x), job->at(me, out), &script, dropped});
    });
    if (!report.clean()) return report;
    // A PE sends nothing to itself, so it receives all of the peer's x.
    EXPECT_EQ(std::memcmp(job->at(0, out), job->at(1, x), total(script[1][0])), 0);
    EXPECT_EQ(std::memcmp(job->at(1, out), job->at(0, x), total(script[0][1])), 0);
    return report;
}

const Script both_ways{{{}, {64, 32, 64, 64}}, {{32, 64, 64, 32}, {}}};

TEST(CheckedRing, IsCleanUnderEverySchedule) {
    for (const char* schedule : {"eager", "lazy", "random:1", "random:2", "random:3", "random:4"}) {
        for (const RingPlace place : {RingPlace::receiver, RingPlace::sender}) {
            const CheckReport report = run(schedule, both_ways, Dropped::nothing, place);
            EXPECT_TRUE(report.status.ok() && report.findings.empty()) << report.text();
        }
    }
}

TEST(CheckedRing, AllSchedulesOfSenderAndReceiverAreClean) {
    for (const RingPlace place : {RingPlace::receiver, RingPlace::sender}) {
        for (const Script& script : {Script{{{}, {64, 64, 32}}, {{}, {}}}, Script{{{}, {64, 64}}, {{64, 32}, {}}}}) {
            const CheckReport report = run("explore", script, Dropped::nothing, place);
            EXPECT_TRUE(report.status.ok() && report.findings.empty()) << report.text();
            EXPECT_TRUE(report.complete);
            EXPECT_GT(report.schedules, 10U);
        }
    }
}

bool has(const CheckReport& report, Hazard hazard) {
    return std::ranges::any_of(report.findings, [&](const npu::Finding& finding) { return finding.hazard == hazard; });
}

TEST(CheckedRing, EveryDroppedFlagIsCaught) {
    for (const RingPlace place : {RingPlace::receiver, RingPlace::sender}) {
        CheckReport report = run("lazy", both_ways, Dropped::gather_flag, place);
        EXPECT_TRUE(has(report, Hazard::missing_flag)) << report.text();
        report = run("lazy", both_ways, Dropped::tail_fence, place);
        EXPECT_TRUE(has(report, Hazard::unpublished)) << report.text();
        report = run("lazy", both_ways, Dropped::read_flag, place);
        EXPECT_TRUE(has(report, Hazard::dma_race)) << report.text();
    }
}

// The endless loop of the reference kernel: the report names the load that never sees the head.
TEST(CheckedRing, ReportsAStaleReadOfAHeadWithoutDcci) {
    const CheckReport report = run("lazy", both_ways, Dropped::head_dcci);
    EXPECT_TRUE(has(report, Hazard::stale_read)) << report.text();
    EXPECT_THAT(report.text(), ::testing::HasSubstr("load on PE 0 core 0 pipe S at "));
    EXPECT_THAT(report.text(), ::testing::HasSubstr("ring_kernels.hpp:"));
}

}  // namespace
}  // namespace npushmem::moe
