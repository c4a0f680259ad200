#include "core/base/cpu_facts.hpp"

#include <gmock/gmock.h>

#include <map>

namespace npushmem {
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

TEST(CgroupQuota, TheTightestLevelOfVersionTwoWins) {
    const auto read = files({{"/sys/fs/cgroup/a/b/cpu.max", "max 100000\n"},
                             {"/sys/fs/cgroup/a/cpu.max", "200000 100000\n"},
                             {"/sys/fs/cgroup/cpu.max", "400000 100000\n"}});
    EXPECT_DOUBLE_EQ(cgroup_quota("0::/a/b\n", read), 2.0);
    EXPECT_DOUBLE_EQ(cgroup_quota("0::/\n", read), 4.0);
}

TEST(CgroupQuota, InsideAContainerThePathMayBeUnknown) {
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

TEST(CgroupQuota, NothingReadableMeansNoLimit) {
    EXPECT_DOUBLE_EQ(cgroup_quota("", files({})), 0.0);
    EXPECT_DOUBLE_EQ(cgroup_quota("nonsense\n1:\n0::/a\n", files({})), 0.0);
}

TEST(UsableCores, IsTheUnionCutByTheQuota) {
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
