#include "core/tools/run/allocation.hpp"

#include <gmock/gmock.h>

#include "tests/fakes/fake_environment.hpp"

namespace npushmem::run {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;

std::optional<std::string> no_file(const std::string&) { return std::nullopt; }

TEST(ExpandHostList, TakesWhatSlurmWrites) {
    EXPECT_THAT(expand_host_list("alone").value(), ElementsAre("alone"));
    EXPECT_THAT(expand_host_list("a,b-1,c").value(), ElementsAre("a", "b-1", "c"));
    EXPECT_THAT(expand_host_list("n[08-10,2],x").value(), ElementsAre("n08", "n09", "n10", "n2", "x"));
    EXPECT_THAT(expand_host_list("r[1-2]n[3-4]-ib").value(), ElementsAre("r1n3-ib", "r1n4-ib", "r2n3-ib", "r2n4-ib"));
}

TEST(ExpandHostList, NamesWhatItDoesNotUnderstand) {
    for (const char* text : {"", "a,,b", "n[1-3", "n1-3]", "n[3-1]", "n[a-b]", "n[]", "n[1-]", "n[1-99999999]"}) {
        const auto refused = expand_host_list(text);
        ASSERT_FALSE(refused.ok()) << text;
        EXPECT_EQ(refused.status().code(), Code::argument);
        EXPECT_THAT(refused.status().message(), HasSubstr("is no list of hosts"));
    }
}

TEST(FindAllocation, KnowsThreeBatchSystems) {
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

TEST(UseAllocation, SpreadsTheJobByTheBatchSystemsShell) {
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

TEST(UseAllocation, LeavesAloneWhatTheCommandLineSays) {
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
