#include "core/base/os_facts.hpp"

#include <gtest/gtest.h>

#include <map>

namespace npushmem {
namespace {

constexpr std::uint64_t mib = 1ULL << 20;

using Files = std::map<std::string, std::string>;

// 1024 MiB, of which 800 are available, unless a test's own files say something else.
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

TEST(AvailableMemory, IsTheMachinesWithoutAGroup) { expect_room(room_of({}), 800 * mib, 1024 * mib, false); }

TEST(AvailableMemory, IsNothingWhenNothingCanBeRead) { expect_room(room_of({{"/proc/meminfo", ""}}), 0, 0, false); }

TEST(AvailableMemory, IsWhatTheGroupLeaves) {
    expect_room(room_of({{"/proc/self/cgroup", "0::/job\n"},
                         {"/sys/fs/cgroup/job/memory.max", "104857600\n"},
                         {"/sys/fs/cgroup/job/memory.current", "31457280\n"}}),
                70 * mib, 100 * mib, true);
}

TEST(AvailableMemory, TakesTheTightestAncestor) {
    expect_room(room_of({{"/proc/self/cgroup", "0::/a/b\n"},
                         {"/sys/fs/cgroup/a/b/memory.max", "max\n"},
                         {"/sys/fs/cgroup/a/memory.max", "52428800\n"}}),
                50 * mib, 50 * mib, true);
}

TEST(AvailableMemory, SeesTheLimitAtTheMountWhenThePathIsOneOfTheOutside) {
    expect_room(room_of({{"/proc/self/cgroup", "0::/outside/container\n"}, {"/sys/fs/cgroup/memory.max", "52428800"}}),
                50 * mib, 50 * mib, true);
    expect_room(room_of({{"/proc/self/cgroup", "0::/\n"}, {"/sys/fs/cgroup/memory.max", "52428800"}}), 50 * mib,
                50 * mib, true);
}

TEST(AvailableMemory, DoesNotCountFilePagesThatCanBeGivenBack) {
    expect_room(room_of({{"/proc/self/cgroup", "0::/job\n"},
                         {"/sys/fs/cgroup/job/memory.max", "104857600\n"},
                         {"/sys/fs/cgroup/job/memory.current", "104857600\n"},
                         {"/sys/fs/cgroup/job/memory.stat", "anon 1\ninactive_anon 7\ninactive_file 62914560\n"}}),
                60 * mib, 100 * mib, true);
}

TEST(AvailableMemory, IsNeverBelowNothing) {
    const Files full{{"/proc/self/cgroup", "0::/job\n"},
                     {"/sys/fs/cgroup/job/memory.max", "104857600\n"},
                     {"/sys/fs/cgroup/job/memory.current", "104857601\n"}};
    expect_room(room_of(full), 0, 100 * mib, true);
    Files odd = full;
    odd["/sys/fs/cgroup/job/memory.stat"] = "inactive_file 999999999999\n";
    expect_room(room_of(odd), 100 * mib, 100 * mib, true);
}

TEST(AvailableMemory, KnowsVersion1) {
    expect_room(room_of({{"/proc/self/cgroup", "5:cpu,cpuacct:/other\n4:hugetlb,memory:/job\n"},
                         {"/sys/fs/cgroup/memory/job/memory.limit_in_bytes", "104857600\n"},
                         {"/sys/fs/cgroup/memory/job/memory.usage_in_bytes", "73400320\n"},
                         {"/sys/fs/cgroup/memory/job/memory.stat", "inactive_file 1\ntotal_inactive_file 20971520\n"},
                         {"/sys/fs/cgroup/memory/other/memory.limit_in_bytes", "1\n"}}),
                50 * mib, 100 * mib, true);
}

TEST(AvailableMemory, TakesTheHugeNumberOfVersion1ForNoLimit) {
    expect_room(room_of({{"/proc/self/cgroup", "4:memory:/job\nnonsense\n1:x\n"},
                         {"/sys/fs/cgroup/memory/memory.limit_in_bytes", "9223372036854771712\n"}}),
                800 * mib, 1024 * mib, false);
}

}  // namespace
}  // namespace npushmem
