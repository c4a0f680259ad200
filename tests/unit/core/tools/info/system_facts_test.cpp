// SPDX-License-Identifier: BSD-3-Clause
#include "core/tools/info/system_facts.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <map>

#include "tests/fakes/fake_os.hpp"

namespace npushmem::info {

namespace {

TEST(KernelOf, ReadsBothNumbers) {
    EXPECT_TRUE(kernel_of("6.1.0-18-amd64").at_least(6, 1));
    EXPECT_FALSE(kernel_of("6.1.0-18-amd64").at_least(6, 2));
    EXPECT_TRUE(kernel_of("6.1").at_least(5, 18));
    EXPECT_FALSE(kernel_of("5.4.0").at_least(5, 18));
    for (const char* malformed : {"", "6", "six.one", "6.", "6-1"}) {
        EXPECT_EQ(kernel_of(malformed).major, 0) << malformed;
        EXPECT_EQ(kernel_of(malformed).release, malformed);
    }
}

TEST(SelectedWord, IsTheOneInBrackets) {
    EXPECT_EQ(selected_word("always within_size [never] deny"), "never");
    EXPECT_EQ(selected_word("always never"), "");
    EXPECT_EQ(selected_word("[always"), "");
    EXPECT_EQ(selected_word("a] [b]"), "b");
}

TEST(VersionIn, IsTheLastRunOfDigitsAndDots) {
    EXPECT_EQ(version_in("npushmem-run 0.1.0\n"), "0.1.0");
    EXPECT_EQ(version_in("libnpushmem.so.0.12.3"), "0.12.3");
    EXPECT_EQ(version_in("libnpushmem.so"), "");
    EXPECT_EQ(version_in(""), "");
    EXPECT_EQ(version_in("7"), "7");
}

TEST(HasCapability, ReadsTheEffectiveSet) {
    const std::string status = "Name:\tx\nCapPrm:\tffffffffffffffff\nCapEff:\t0000000000004000\n";
    EXPECT_TRUE(has_capability(status, 14));
    EXPECT_FALSE(has_capability(status, 13));
    EXPECT_FALSE(has_capability("", 14));
}

TEST(MemoryFacts, AreReadFromTheirFiles) {
    const std::map<std::string, std::string> files{
        {"/proc/meminfo", "MemTotal: 4096 kB\nMemAvailable: 1024 kB\nCommitLimit:  2048 kB\nCommitted_AS:  512 kB\n"},
        {"/proc/sys/vm/overcommit_memory", "2\n"},
        {"/sys/kernel/mm/transparent_hugepage/shmem_enabled", "always within_size advise [never] deny force\n"}};
    const MemoryFacts facts = memory_facts([&](const std::string& path) -> std::optional<std::string> {
        const auto found = files.find(path);
        return found == files.end() ? std::nullopt : std::optional(found->second);
    });
    EXPECT_EQ(facts.available.available, 1U << 20);
    EXPECT_EQ(facts.available.total, 4U << 20);
    EXPECT_EQ(facts.overcommit, 2);
    EXPECT_EQ(facts.commit_limit, 2U << 20);
    EXPECT_EQ(facts.committed, 512U << 10);
    EXPECT_EQ(facts.huge_pages, "never");
}

TEST(MemoryFacts, AreUnknownWithoutFiles) {
    const MemoryFacts facts =
        memory_facts([](const std::string&) -> std::optional<std::string> { return std::nullopt; });
    EXPECT_EQ(facts.overcommit, std::nullopt);
    EXPECT_EQ(facts.commit_limit, 0U);
    EXPECT_EQ(facts.huge_pages, "");
}

TEST(GatherFacts, DescribesThisMachine) {
    const SystemFacts facts =
        gather_facts({}, {"/nonexistent", "/nonexistent"}, FakeEnvironment{{"PATH", "/nonexistent"}});
    EXPECT_GE(facts.cpus, 1);
    EXPECT_GT(facts.usable_cores(), 0.0);
    EXPECT_GT(facts.memory.available.total, 0U);
    EXPECT_GT(facts.kernel.major, 0);
    EXPECT_EQ(facts.kernel.shared_memory_failure, "");  // this program's tests need it, too
    EXPECT_EQ(facts.library.path, "");
    EXPECT_EQ(facts.launcher.path, "");
    EXPECT_THAT(facts.launchers, ::testing::IsEmpty());
    EXPECT_EQ(facts.hwloc.built_major, facts.hwloc.loaded_major);
}

}  // namespace

}  // namespace npushmem::info
