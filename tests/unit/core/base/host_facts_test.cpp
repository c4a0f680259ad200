// SPDX-License-Identifier: BSD-3-Clause
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <map>

#include "core/base/host_facts.hpp"

namespace npushmem {

namespace {

constexpr std::uint64_t mib = 1ULL << 20;

using Files = std::map<std::string, std::string>;

// 1024 MiB, of which 800 are available, unless a test provides its own files.
AvailableMemory room_of(Files files) {
    files.try_emplace("/proc/meminfo", "MemTotal:  1048576 kB\nMemFree: 1 kB\nMemAvailable:   819200 kB\n");
    return available_memory([&files](const std::string& path) -> std::optional<std::string> {
        const auto found = files.find(path);
        return found == files.end() ? std::nullopt : std::optional(found->second);
    });
}

void expect_room(const AvailableMemory& room, std::uint64_t available, std::uint64_t total, bool limited) {
    EXPECT_EQ(room.available, available);
    EXPECT_EQ(room.total, total);
    EXPECT_EQ(room.limited_by_group, limited);
}

TEST(AvailableMemory, IsThatOfTheMachineWithoutACgroup) { expect_room(room_of({}), 800 * mib, 1024 * mib, false); }

// As of a file in /proc whose process ends while it is read.
TEST(SystemFiles, AFailedReadIsNoFile) {
    EXPECT_EQ(system_files()("/proc/self/mem"), std::nullopt);
    EXPECT_EQ(system_files()("/no such file"), std::nullopt);
    EXPECT_TRUE(system_files()("/proc/self/stat").has_value());
}

TEST(AvailableMemory, IsZeroIfNoFileIsReadable) { expect_room(room_of({{"/proc/meminfo", ""}}), 0, 0, false); }

TEST(AvailableMemory, IsTheRemainderOfTheCgroupLimit) {
    expect_room(room_of({{"/proc/self/cgroup", "0::/job\n"},
                         {"/sys/fs/cgroup/job/memory.max", "104857600\n"},
                         {"/sys/fs/cgroup/job/memory.current", "31457280\n"}}),
                70 * mib, 100 * mib, true);
}

TEST(AvailableMemory, UsesTheLowestLimitOfAllAncestors) {
    expect_room(room_of({{"/proc/self/cgroup", "0::/a/b\n"},
                         {"/sys/fs/cgroup/a/b/memory.max", "max\n"},
                         {"/sys/fs/cgroup/a/memory.max", "52428800\n"}}),
                50 * mib, 50 * mib, true);
}

TEST(AvailableMemory, ReadsTheLimitAtTheMountIfTheCgroupPathIsNotVisible) {
    expect_room(room_of({{"/proc/self/cgroup", "0::/outside/container\n"}, {"/sys/fs/cgroup/memory.max", "52428800"}}),
                50 * mib, 50 * mib, true);
    expect_room(room_of({{"/proc/self/cgroup", "0::/\n"}, {"/sys/fs/cgroup/memory.max", "52428800"}}), 50 * mib,
                50 * mib, true);
}

TEST(AvailableMemory, CountsReclaimableFilePagesAsAvailable) {
    expect_room(room_of({{"/proc/self/cgroup", "0::/job\n"},
                         {"/sys/fs/cgroup/job/memory.max", "104857600\n"},
                         {"/sys/fs/cgroup/job/memory.current", "104857600\n"},
                         {"/sys/fs/cgroup/job/memory.stat", "anon 1\ninactive_anon 7\ninactive_file 62914560\n"}}),
                60 * mib, 100 * mib, true);
}

TEST(AvailableMemory, IsZeroIfUsageExceedsTheLimit) {
    const Files full{{"/proc/self/cgroup", "0::/job\n"},
                     {"/sys/fs/cgroup/job/memory.max", "104857600\n"},
                     {"/sys/fs/cgroup/job/memory.current", "104857601\n"}};
    expect_room(room_of(full), 0, 100 * mib, true);
    Files odd = full;
    odd["/sys/fs/cgroup/job/memory.stat"] = "inactive_file 999999999999\n";
    expect_room(room_of(odd), 100 * mib, 100 * mib, true);
}

TEST(AvailableMemory, SupportsVersion1) {
    expect_room(room_of({{"/proc/self/cgroup", "5:cpu,cpuacct:/other\n4:hugetlb,memory:/job\n"},
                         {"/sys/fs/cgroup/memory/job/memory.limit_in_bytes", "104857600\n"},
                         {"/sys/fs/cgroup/memory/job/memory.usage_in_bytes", "73400320\n"},
                         {"/sys/fs/cgroup/memory/job/memory.stat", "inactive_file 1\ntotal_inactive_file 20971520\n"},
                         {"/sys/fs/cgroup/memory/other/memory.limit_in_bytes", "1\n"}}),
                50 * mib, 100 * mib, true);
}

TEST(AvailableMemory, TreatsTheMaximumOfVersion1AsNoLimit) {
    expect_room(room_of({{"/proc/self/cgroup", "4:memory:/job\nnonsense\n1:x\n"},
                         {"/sys/fs/cgroup/memory/memory.limit_in_bytes", "9223372036854771712\n"}}),
                800 * mib, 1024 * mib, false);
}

}  // namespace

namespace {

FileReader files(std::map<std::string, std::string> content) {
    return [content = std::move(content)](const std::string& path) -> std::optional<std::string> {
        const auto found = content.find(path);
        return found == content.end() ? std::nullopt : std::optional(found->second);
    };
}

TEST(ParseCpuMax, ReadsQuotaAndNoQuota) {
    EXPECT_DOUBLE_EQ(parse_cpu_max("150000 100000\n"), 1.5);
    EXPECT_DOUBLE_EQ(parse_cpu_max("max 100000\n"), 0.0);
    EXPECT_DOUBLE_EQ(parse_cpu_max(""), 0.0);
    EXPECT_DOUBLE_EQ(parse_cpu_max("150000"), 0.0);
    EXPECT_DOUBLE_EQ(parse_cpu_max("100000 0"), 0.0);
}

TEST(CgroupQuota, UsesTheLowestQuotaOfAllLevelsInVersionTwo) {
    const auto read = files({{"/sys/fs/cgroup/a/b/cpu.max", "max 100000\n"},
                             {"/sys/fs/cgroup/a/cpu.max", "200000 100000\n"},
                             {"/sys/fs/cgroup/cpu.max", "400000 100000\n"}});
    EXPECT_DOUBLE_EQ(cgroup_quota("0::/a/b\n", read), 2.0);
    EXPECT_DOUBLE_EQ(cgroup_quota("0::/\n", read), 4.0);
}

TEST(CgroupQuota, ReadsTheQuotaAtTheMountIfTheCgroupPathIsNotVisible) {
    const auto read = files({{"/sys/fs/cgroup/cpu.max", "50000 100000\n"}});
    EXPECT_DOUBLE_EQ(cgroup_quota("0::/docker/0123/init\n", read), 0.5);
}

TEST(CgroupQuota, ReadsVersionOne) {
    const auto read = files({{"/sys/fs/cgroup/cpu/job/cpu.cfs_quota_us", "300000\n"},
                             {"/sys/fs/cgroup/cpu/job/cpu.cfs_period_us", "100000\n"},
                             {"/sys/fs/cgroup/cpu/cpu.cfs_quota_us", "-1\n"},
                             {"/sys/fs/cgroup/cpu/cpu.cfs_period_us", "100000\n"}});
    EXPECT_DOUBLE_EQ(cgroup_quota("4:memory:/x\n3:cpu,cpuacct:/job\n0::/\n", read), 3.0);
    EXPECT_DOUBLE_EQ(cgroup_quota("3:cpuset:/job\n", read), 0.0);
}

// The path of a control group begins with a slash, unless the file is damaged.
TEST(QuotaOfADamagedFile, EndsAtAPathWithoutASlash) {
    const FileReader none = [](const std::string&) { return std::optional<std::string>(); };
    EXPECT_EQ(cgroup_quota("0::group", none), 0.0);
    EXPECT_EQ(cgroup_quota("4:cpu:group/inner", none), 0.0);
}

TEST(CgroupQuota, IsUnlimitedIfNoFileIsReadable) {
    EXPECT_DOUBLE_EQ(cgroup_quota("", files({})), 0.0);
    EXPECT_DOUBLE_EQ(cgroup_quota("nonsense\n1:\n0::/a\n", files({})), 0.0);
}

TEST(UsableCores, IsTheUnionLimitedByTheQuota) {
    const CpuMask first{0b0001};
    const CpuMask second{0b0010};
    const CpuMask far_away{0, 0b1};
    EXPECT_DOUBLE_EQ(usable_cores(std::vector{first, second, first}, 0), 2.0);
    EXPECT_DOUBLE_EQ(usable_cores(std::vector{first, far_away}, 0), 2.0);
    EXPECT_DOUBLE_EQ(usable_cores(std::vector{first, second}, 1.5), 1.5);
    EXPECT_DOUBLE_EQ(usable_cores(std::vector{first, second}, 8), 2.0);
    EXPECT_DOUBLE_EQ(usable_cores({}, 0), 1.0);
}

TEST(ReadCpuFacts, FindsAtLeastOneCpuHere) {
    const CpuFacts facts = read_cpu_facts();
    EXPECT_GE(count_cpus(facts.affinity), 1);
    EXPECT_GE(facts.quota, 0.0);
}

}  // namespace

}  // namespace npushmem
