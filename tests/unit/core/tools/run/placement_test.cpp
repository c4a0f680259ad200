// SPDX-License-Identifier: BSD-3-Clause
#include "core/tools/run/placement.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <set>
#include <vector>

#include "tests/fakes/fake_os.hpp"

namespace npushmem::run {

namespace {

using ::testing::Each;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;

std::vector<int> hosts(int npes, int nodes, MapBy map_by) {
    std::vector<int> out;
    for (int pe = 0; pe < npes; ++pe) out.push_back(emulated_host_of(pe, npes, nodes, map_by));
    return out;
}

TEST(HostPlan, KnownShapes) {
    EXPECT_EQ(hosts(10, 4, MapBy::block), (std::vector<int>{0, 0, 0, 1, 1, 1, 2, 2, 3, 3}));
    EXPECT_EQ(hosts(6, 3, MapBy::block), (std::vector<int>{0, 0, 1, 1, 2, 2}));
    EXPECT_EQ(hosts(5, 2, MapBy::round_robin), (std::vector<int>{0, 1, 0, 1, 0}));
}

TEST(HostPlan, EveryHostIsUsedAndSizesDifferByOneAtMost) {
    for (const MapBy map_by : {MapBy::block, MapBy::round_robin})
        for (int npes = 1; npes <= 40; ++npes)
            for (int nodes = 1; nodes <= npes; ++nodes) {
                const auto all = hosts(npes, nodes, map_by);
                std::vector<int> sizes(static_cast<std::size_t>(nodes));
                for (const int host : all) ++sizes.at(static_cast<std::size_t>(host));
                const auto [small, large] = std::minmax_element(sizes.begin(), sizes.end());
                EXPECT_GE(*small, 1);
                EXPECT_LE(*large - *small, 1);
                if (map_by == MapBy::block) {
                    EXPECT_TRUE(std::is_sorted(all.begin(), all.end()));
                }
            }
}

// All sizes that matter: every PE is on one host, and on the one that it would be on if hosts were emulated.
TEST(HostPes, DealsPesAsEmulatedHostsDo) {
    for (int npes = 1; npes <= 24; ++npes)
        for (int hosts = 1; hosts <= npes; ++hosts)
            for (const MapBy rule : {MapBy::block, MapBy::round_robin}) {
                std::vector<int> host_of(static_cast<std::size_t>(npes), -1);
                for (int host = 0; host < hosts; ++host) {
                    const HostPes pes = pes_of_host(host, hosts, npes, rule);
                    for (int i = 0; i < pes.count; ++i)
                        host_of.at(static_cast<std::size_t>(pes.numbering.of(i))) = host;
                }
                for (int pe = 0; pe < npes; ++pe)
                    EXPECT_EQ(host_of[static_cast<std::size_t>(pe)], emulated_host_of(pe, npes, hosts, rule))
                        << "PE " << pe << " of " << npes << " on " << hosts;
            }
}

std::vector<CpuList> units(int count) {
    std::vector<CpuList> out;
    for (int i = 0; i < count; ++i) out.push_back({2 * i, 2 * i + 1});
    return out;
}

TEST(BindingPlan, CoreReusesCoresIfThereAreMorePes) {
    EXPECT_THAT(binding_plan(Bind::core, {{0}, {1}}, 3), ElementsAre(CpuList{0}, CpuList{1}, CpuList{0}));
}

TEST(BindingPlan, NoneBindsNoPe) { EXPECT_THAT(binding_plan(Bind::none, units(4), 3), Each(IsEmpty())); }

TEST(BindingPlan, AutomaticSharesUntilPesOutnumberCores) {
    EXPECT_THAT(binding_plan(Bind::automatic, units(4), 2), ElementsAre(CpuList{0, 1, 2, 3}, CpuList{4, 5, 6, 7}));
    EXPECT_THAT(binding_plan(Bind::automatic, units(4), 5), Each(IsEmpty()));
}

TEST(BindingPlan, SharesAreDisjointAndEven) {
    for (int cores = 1; cores <= 12; ++cores)
        for (int npes = 1; npes <= cores; ++npes) {
            std::set<int> seen;
            std::size_t smallest = 1000;
            std::size_t largest = 0;
            for (const auto& cpus : binding_plan(Bind::share, units(cores), npes)) {
                for (const int cpu : cpus) EXPECT_TRUE(seen.insert(cpu).second);
                smallest = std::min(smallest, cpus.size());
                largest = std::max(largest, cpus.size());
            }
            EXPECT_EQ(seen.size(), static_cast<std::size_t>(2 * cores));
            EXPECT_LE(largest - smallest, 2U);
            EXPECT_GE(smallest, 2U);
        }
}

TEST(BindingPlan, ShareReusesUnitsIfThereAreMorePes) {
    EXPECT_THAT(binding_plan(Bind::share, {{0}, {1}}, 3), ElementsAre(CpuList{0}, CpuList{1}, CpuList{0}));
}

TEST(FormatCpus, JoinsRanges) {
    EXPECT_EQ(format_cpus({}), "");
    EXPECT_EQ(format_cpus({3}), "3");
    EXPECT_EQ(format_cpus({8, 0, 1, 2, 10, 11}), "0-2,8,10-11");
}

std::optional<std::string> no_file(const std::string&) { return std::nullopt; }

TEST(ExpandHostList, ExpandsSlurmHostLists) {
    EXPECT_THAT(expand_host_list("alone").value(), ElementsAre("alone"));
    EXPECT_THAT(expand_host_list("a,b-1,c").value(), ElementsAre("a", "b-1", "c"));
    EXPECT_THAT(expand_host_list("n[08-10,2],x").value(), ElementsAre("n08", "n09", "n10", "n2", "x"));
    EXPECT_THAT(expand_host_list("r[1-2]n[3-4]-ib").value(), ElementsAre("r1n3-ib", "r1n4-ib", "r2n3-ib", "r2n4-ib"));
}

TEST(ExpandHostList, RejectsMalformedLists) {
    for (const char* text : {"", "a,,b", "n[1-3", "n1-3]", "n[3-1]", "n[a-b]", "n[]", "n[1-]", "n[1-99999999]"}) {
        const auto refused = expand_host_list(text);
        ASSERT_FALSE(refused.ok()) << text;
        EXPECT_EQ(refused.status().code(), Code::argument);
        EXPECT_THAT(refused.status().message(), HasSubstr("is not a list of hosts"));
    }
}

TEST(FindAllocation, ReadsSlurmPbsAndLsf) {
    const auto slurm = find_allocation(FakeEnvironment{{"SLURM_JOB_NODELIST", "n[1-2],n1"}}, no_file);
    EXPECT_THAT(slurm.value()->hosts, ElementsAre("n1", "n2"));
    EXPECT_EQ(slurm.value()->rsh.front(), "srun");
    const auto pbs = find_allocation(FakeEnvironment{{"PBS_NODEFILE", "/nodes"}}, [](const std::string& path) {
        return path == "/nodes" ? std::optional<std::string>("b\nb\na\n") : std::nullopt;
    });
    EXPECT_THAT(pbs.value()->hosts, ElementsAre("b", "a"));
    EXPECT_THAT(pbs.value()->rsh, IsEmpty());
    const auto lsf = find_allocation(FakeEnvironment{{"LSB_HOSTS", "x x y"}}, no_file);
    EXPECT_THAT(lsf.value()->hosts, ElementsAre("x", "y"));
    EXPECT_FALSE(find_allocation(FakeEnvironment{}, no_file).value().has_value());
}

TEST(FindAllocation, AListThatCannotBeReadIsAFailure) {
    const auto pbs = find_allocation(FakeEnvironment{{"PBS_NODEFILE", "/gone"}}, no_file);
    EXPECT_THAT(pbs.status().message(), HasSubstr("PBS_NODEFILE='/gone' cannot be read"));
    const auto slurm = find_allocation(FakeEnvironment{{"SLURM_JOB_NODELIST", "n[1"}}, no_file);
    EXPECT_THAT(slurm.status().message(), HasSubstr("SLURM_JOB_NODELIST"));
}

Options of_pes(int npes) {
    Options options;
    options.npes = npes;
    return options;
}

TEST(UseAllocation, UsesTheHostsAndTheShellOfTheBatchSystem) {
    const FakeEnvironment slurm{{"SLURM_JOB_NODELIST", "n[1-3]"}};
    Options options = of_pes(8);
    ASSERT_TRUE(use_allocation(options, slurm, no_file).ok());
    EXPECT_THAT(options.hosts, ElementsAre("n1", "n2", "n3"));
    EXPECT_EQ(options.rsh.back(), "--nodelist");
    Options few = of_pes(2);
    ASSERT_TRUE(use_allocation(few, slurm, no_file).ok());
    EXPECT_THAT(few.hosts, ElementsAre("n1", "n2"));
    Options own_shell = of_pes(4);
    own_shell.rsh = {"rsh"};
    own_shell.rsh_given = true;
    ASSERT_TRUE(use_allocation(own_shell, slurm, no_file).ok());
    EXPECT_THAT(own_shell.rsh, ElementsAre("rsh"));
}

TEST(UseAllocation, DoesNotOverrideTheCommandLine) {
    const FakeEnvironment slurm{{"SLURM_JOB_NODELIST", "n[1-3]"}};
    Options local = of_pes(8);
    local.local = true;
    Options emulated = of_pes(8);
    emulated.nodes = 2;
    Options chosen = of_pes(8);
    chosen.hosts = {"a"};
    Options alone = of_pes(1);
    for (Options* options : {&local, &emulated, &chosen, &alone}) {
        const auto before = options->hosts;
        EXPECT_TRUE(use_allocation(*options, slurm, no_file).ok());
        EXPECT_EQ(options->hosts, before);
    }
    Options one_host = of_pes(8);
    EXPECT_TRUE(use_allocation(one_host, FakeEnvironment{{"SLURM_JOB_NODELIST", "n1"}}, no_file).ok());
    EXPECT_THAT(one_host.hosts, IsEmpty());
    const Status bad = use_allocation(one_host, FakeEnvironment{{"SLURM_JOB_NODELIST", "n[1"}}, no_file);
    EXPECT_THAT(bad.message(), HasSubstr("--local runs on this host only"));
}

}  // namespace

}  // namespace npushmem::run
