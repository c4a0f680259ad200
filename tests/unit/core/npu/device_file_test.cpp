// SPDX-License-Identifier: BSD-3-Clause
// Device files: their syntax, and kernels that one device accepts and another one does not.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <fstream>

#include "npushmem/npu/checked_job.hpp"
#include "npushmem/npu/npu.hpp"
#include "npushmem/npu/virtual_time.hpp"

namespace npushmem::npu {
namespace {

using testing::AllOf;
using testing::EndsWith;
using testing::HasSubstr;

std::string refusal_of(const char* text) {
    DeviceConfig device;
    const Status status = device.apply(text);
    EXPECT_EQ(status.code(), Code::config) << text;
    EXPECT_EQ(device.text(), DeviceConfig{}.text()) << "a refused file must change nothing: " << text;
    return status.message();
}

TEST(DeviceFile, SetsWhatItNames) {
    DeviceConfig device;
    ASSERT_TRUE(device
                    .apply("# a small device\nblocks = 3\n  vector_cores=1\nub_bytes = 64K\nflag_ids = 4  # few\n"
                           "pipes = MTE2 MTE3\ngm_bytes = 1M\nhccs_rate = 10\ngroup = 2\n")
                    .ok());
    EXPECT_EQ(device.blocks, 3);
    EXPECT_EQ(device.vector_cores, 1);
    EXPECT_EQ(device.ub_bytes, 65536U);
    EXPECT_EQ(device.ub_reserved, DeviceConfig{}.ub_reserved);
    EXPECT_EQ(device.rules.flag_ids, 4U);
    EXPECT_EQ(device.rules.gm_bytes, 1048576U);
    EXPECT_FALSE(device.rules.has(Pipe::vector));
    EXPECT_TRUE(device.rules.has(Pipe::copy_in) && device.rules.has(Pipe::copy_out) && device.rules.has(Pipe::scalar));
}

TEST(DeviceFile, ReadsItsOwnText) {
    DeviceConfig device;
    ASSERT_TRUE(device
                    .apply("blocks = 7\nub_alignment = 128\ngm_alignment = 4\nmax_copy_blocks = 9\nmapped_pes = 2\n"
                           "max_copy_bytes = 1000\npipes = V")
                    .ok());
    DeviceConfig back;
    ASSERT_TRUE(back.apply(device.text()).ok());
    EXPECT_EQ(back.text(), device.text());
    EXPECT_EQ(back.rules, device.rules);
}

// One file holds the limits and the speed of a device.
TEST(DeviceFile, IsAlsoADeviceModel) {
    const std::string whole = DeviceConfig{}.text() + DeviceModel{}.text();
    DeviceConfig device;
    EXPECT_TRUE(device.apply(whole).ok());
    EXPECT_TRUE(DeviceModel::parse(whole).ok());
}

TEST(DeviceFile, ErrorsReportTheLineTheNameAndTheExpectedValues) {
    EXPECT_THAT(refusal_of("blocks = 2\n\nnonsense"),
                AllOf(HasSubstr("device file, line 3"), HasSubstr("'nonsense': expected name = value")));
    EXPECT_THAT(refusal_of("colour = 5"),
                AllOf(HasSubstr("line 1"), HasSubstr("unknown name 'colour'; expected one of: pipes, blocks"),
                      HasSubstr("gm_rate")));
    EXPECT_THAT(refusal_of("blocks = 0"), EndsWith("line 1: blocks: '0': expected 1 to 4096"));
    EXPECT_THAT(refusal_of("blocks = many"), EndsWith("blocks: 'many': expected 1 to 4096"));
    EXPECT_THAT(refusal_of("blocks ="), EndsWith("blocks: '': expected 1 to 4096"));
    EXPECT_THAT(refusal_of("blocks = 99999999999999999999"), HasSubstr("expected 1 to 4096"));
    EXPECT_THAT(refusal_of("vector_cores = 17"), EndsWith("vector_cores: '17': expected 1 to 16"));
    EXPECT_THAT(refusal_of("ub_bytes = 5000"), EndsWith("'5000': expected a multiple of 4096 from 4096 to 1073741824"));
    EXPECT_THAT(refusal_of("ub_reserved = 33"), EndsWith("'33': expected a multiple of 32 from 0 to 1073741824"));
    EXPECT_THAT(refusal_of("ub_alignment = 48"), EndsWith("'48': expected a power of two from 32 to 4096"));
    EXPECT_THAT(refusal_of("ub_alignment = 16"), EndsWith("'16': expected a power of two from 32 to 4096"));
    EXPECT_THAT(refusal_of("gm_alignment = 3"), EndsWith("'3': expected a power of two from 1 to 4096"));
    EXPECT_THAT(refusal_of("max_copy_blocks = 4096"), EndsWith("expected 1 to 4095"));
    EXPECT_THAT(refusal_of("max_copy_bytes = 31"), EndsWith("expected 32 to 2097151"));
    EXPECT_THAT(refusal_of("flag_ids = 7"), EndsWith("flag_ids: '7': expected 1 to 6"));
    EXPECT_THAT(refusal_of("gm_bytes = -1"), HasSubstr("gm_bytes: '-1': expected 0 to"));
    EXPECT_THAT(refusal_of("mapped_pes = x"), HasSubstr("mapped_pes: 'x': expected 0 to"));
    EXPECT_THAT(refusal_of("pipes = V CUBE"), EndsWith("pipes: 'CUBE': expected some of: V, MTE2, MTE3"));
    EXPECT_THAT(refusal_of("ub_bytes = 4096\nub_reserved = 8192"), HasSubstr("ub_reserved is 8192"));
}

TEST(DeviceFile, ReportsAFileThatCannotBeRead) {
    DeviceConfig device;
    EXPECT_THAT(device.apply_file("/nowhere/device.txt").message(),
                HasSubstr("cannot read the device file /nowhere/device.txt: No such file"));
    const std::string path = testing::TempDir() + "device_file_test.txt";
    std::ofstream(path) << "flag_ids = 0\n";
    EXPECT_THAT(device.apply_file(path).message(), AllOf(HasSubstr(path), HasSubstr("line 1")));
    std::ofstream(path) << "flag_ids = 2\n";
    EXPECT_TRUE(device.apply_file(path).ok());
    EXPECT_EQ(device.rules.flag_ids, 2U);
    static_cast<void>(std::remove(path.c_str()));
}

TEST(DeviceFile, RulesOfACodedDeviceAreValidated) {
    DeviceConfig device;
    device.rules.ub_alignment = 40;
    EXPECT_THAT(device.validate().message(), HasSubstr("ub_alignment is 40, must be a power of two"));
}

// Runs the kernel on two PEs of the device that `file` describes.
template <class Kernel>
CheckReport run_on(const char* file, const Kernel& kernel) {
    CheckedJobConfig config{.pes = 2, .heap_bytes = 64 * 1024};
    config.device.vector_cores = 1;
    config.device.launch_timeout = std::chrono::seconds(60);
    EXPECT_TRUE(config.device.apply(file).ok()) << file;
    const auto job = CheckedJob::create(config).value();
    auto* data = job->allocate<float>(1024);
    return job->run(1, [&](Core& core) { kernel(core, job->at(core.my_pe(), data)); });
}

// A kernel that is right on the default device has exactly this hazard on the other one.
template <class Kernel>
void expect_only_on(const char* file, Hazard hazard, const char* detail, const Kernel& kernel) {
    const CheckReport right = run_on("", kernel);
    EXPECT_TRUE(right.clean()) << right.text();
    const CheckReport wrong = run_on(file, kernel);
    ASSERT_FALSE(wrong.findings.empty()) << file;
    for (const Finding& finding : wrong.findings) {
        EXPECT_EQ(finding.hazard, hazard) << finding.text();
        EXPECT_THAT(finding.detail, HasSubstr(detail));
        EXPECT_THAT(finding.here.where.file_name(), HasSubstr("device_file_test.cpp"));
    }
}

void copy_in(Core& core, float* data) {
    static_cast<void>(core.ub_alloc<float>(8));
    const auto tile = core.ub_alloc<float>(64);
    core.data_copy(tile, gm(data + 4, 64), 64);
    core.set_flag<Pipe::copy_in, Pipe::vector>(5);
    core.wait_flag<Pipe::copy_in, Pipe::vector>(5);
    core.add(tile, tile, tile, 64);
}

TEST(DevicesDiffer, InAlignment) {
    expect_only_on("ub_alignment = 64", Hazard::alignment, "UB address is 32 bytes beyond a multiple of 64", copy_in);
    expect_only_on("gm_alignment = 32", Hazard::alignment, "GM address is 16 bytes beyond a multiple of 32", copy_in);
}

TEST(DevicesDiffer, InFlags) {
    expect_only_on("flag_ids = 5", Hazard::flag_id, "flag id 5 must be 0 to 4 on this device", copy_in);
}

TEST(DevicesDiffer, InPipes) {
    expect_only_on("pipes = MTE2 MTE3", Hazard::copy_shape, "uses pipe V, which this device does not have", copy_in);
}

TEST(DevicesDiffer, InTheShapeOfCopies) {
    expect_only_on("max_copy_bytes = 128", Hazard::copy_shape, "copies blocks of 256 bytes; this device copies 128",
                   copy_in);
    expect_only_on("max_copy_blocks = 2", Hazard::copy_shape, "copies 4 blocks; this device copies 2",
                   [](Core& core, float* data) {
                       const auto tile = core.ub_alloc<float>(64);
                       core.data_copy(tile, gm(data, 64), StridedShape{.blocks = 4});
                   });
}

TEST(DevicesDiffer, InLinks) {
    expect_only_on("mapped_pes = 1", Hazard::bad_address, "directly; this device maps only the PEs of a group of 1",
                   [](Core& core, float* data) {
                       static_cast<void>(core.load(core.remote(data, 1 - core.my_pe())));
                       const auto tile = core.ub_alloc<float>(8);
                       core.data_copy(tile, gm(core.remote(data, 1 - core.my_pe()), 8), 8);
                   });
    const CheckReport right =
        run_on("mapped_pes = 1", [](Core& core, float* data) { core.put(data + 512, data, 8, 1 - core.my_pe()); });
    EXPECT_TRUE(right.clean()) << right.text();
}

TEST(DevicesDiffer, InUb) {
    const auto fill = [](Core& core, float*) { core.fill(core.ub_alloc<float>(2048), 1, 2048); };
    EXPECT_TRUE(run_on("", fill).clean());
    const CheckReport wrong = run_on("ub_bytes = 8192\nub_reserved = 1024", fill);
    ASSERT_FALSE(wrong.findings.empty());
    EXPECT_EQ(wrong.findings.front().hazard, Hazard::ub_overflow) << wrong.text();
}

TEST(DevicesDiffer, InGlobalMemory) {
    CheckedJobConfig config{.heap_bytes = 64 * 1024};
    ASSERT_TRUE(config.device.apply("gm_bytes = 32K").ok());
    EXPECT_THAT(CheckedJob::create(config).status().message(),
                HasSubstr("heap_bytes is 65536, but gm_bytes of the device is 32768"));
}

}  // namespace
}  // namespace npushmem::npu
