// SPDX-License-Identifier: BSD-3-Clause
#include "core/tools/run/job_preparation.hpp"

#include <gmock/gmock.h>

#include "core/tools/run/exit_record.hpp"

namespace npushmem::run {

namespace {

using ::testing::Each;
using ::testing::ElementsAre;
using ::testing::Field;
using ::testing::HasSubstr;

std::vector<std::string> entries(EnvironmentBlock& block) {
    std::vector<std::string> out;
    const auto pointers = block.pointers();
    EXPECT_EQ(pointers.back(), nullptr);
    for (std::size_t i = 0; i + 1 < pointers.size(); ++i) out.emplace_back(pointers[i]);
    return out;
}

TEST(EnvironmentBlock, LaterSettingsReplaceEarlierOnes) {
    const char* const before[] = {"A=1", "AB=2", "B=", nullptr};
    auto block = EnvironmentBlock::copy_of(before);
    block.set("A", "3");
    block.set("C", "x=y");
    block.set("C", "z");
    EXPECT_THAT(entries(block), ::testing::ElementsAre("A=3", "AB=2", "B=", "C=z"));
}

TEST(EnvironmentBlock, FindsWholeNamesOnly) {
    const char* const before[] = {"AB=2", "B=", nullptr};
    const auto block = EnvironmentBlock::copy_of(before);
    EXPECT_EQ(block.value("A"), nullptr);
    EXPECT_STREQ(block.value("AB"), "2");
    EXPECT_STREQ(block.value("B"), "");
    EXPECT_EQ(block.value(""), nullptr);
}

// The processes read the file themselves.
TEST(EnvironmentBlock, CountsVariablesOfTheConfigurationFileAsSet) {
    auto block = EnvironmentBlock::copy_of(nullptr);
    block.use_config_file({{"NPUSHMEM_BOOTSTRAP", {"pmix", "f:1"}}, {"NPUSHMEM_PE", {"1", "f:2"}}});
    EXPECT_STREQ(block.value("NPUSHMEM_BOOTSTRAP"), "pmix");
    block.set_default("NPUSHMEM_BOOTSTRAP", "UID");
    EXPECT_STREQ(block.value("NPUSHMEM_BOOTSTRAP"), "pmix");
    EXPECT_EQ(entries(block), std::vector<std::string>{});
    block.set("NPUSHMEM_PE", "2");
    EXPECT_STREQ(block.value("NPUSHMEM_PE"), "2");
}

TEST(EnvironmentBlock, DefaultsDoNotReplaceExistingEntries) {
    auto block = EnvironmentBlock::copy_of(nullptr);
    block.set_default("A", "1");
    block.set_default("A", "2");
    block.set("B", "");
    block.set_default("B", "3");
    EXPECT_THAT(entries(block), ::testing::ElementsAre("A=1", "B="));
}

TEST(EnvironmentBlock, KeepsEntriesThatAreNoAssignments) {
    const char* const before[] = {"odd", "", "A=1", nullptr};
    auto block = EnvironmentBlock::copy_of(before);
    EXPECT_EQ(block.value("odd"), nullptr);
    EXPECT_THAT(entries(block), ::testing::ElementsAre("odd", "", "A=1"));
}

ProgramError refused(const std::string& name, const std::string& path) {
    auto found = find_program(name, path);
    if (std::holds_alternative<std::string>(found)) return {0, "found " + std::get<std::string>(found)};
    return std::get<ProgramError>(found);
}

TEST(ProgramPath, SearchesInOrder) {
    EXPECT_EQ(std::get<std::string>(find_program("sh", "/nonexistent:/bin:/usr/bin")), "/bin/sh");
    EXPECT_EQ(std::get<std::string>(find_program("/bin/sh", "")), "/bin/sh");
}

TEST(ProgramPath, MissingProgramIs127) {
    EXPECT_EQ(refused("no-such-program", "/bin").status, exit_not_found);
    EXPECT_THAT(refused("no-such-program", "/bin").message, HasSubstr("'no-such-program' was not found in PATH"));
    EXPECT_EQ(refused("/no/such/program", "/bin").status, exit_not_found);
    EXPECT_THAT(refused("/no/such/program", "/bin").message, HasSubstr("/no/such/program"));
    EXPECT_EQ(refused("", "/bin").status, exit_not_found);
    EXPECT_EQ(refused("sh", "").status, exit_not_found);
}

TEST(ProgramPath, AFileThatIsNotExecutableIs126) {
    EXPECT_EQ(refused("/usr/", "").status, exit_not_executable);
    EXPECT_THAT(refused("/usr/", "").message, HasSubstr("is a directory"));
    EXPECT_EQ(refused("/proc/self/maps", "").status, exit_not_executable);
    EXPECT_EQ(refused("bin", "/usr").status, exit_not_found);  // a directory in PATH is no candidate
}

constexpr const char* environment[] = {"PATH=/bin:/usr/bin", "HOME=/root", nullptr};

Options some_options() {
    Options options;
    options.npes = 3;
    options.bind = Bind::none;
    options.command = {"sh", "-c", "true"};
    return options;
}

JobPlan prepared(const Options& options, const char* const* variables = environment) {
    auto made = prepare_job(options, variables);
    if (const auto* exit = std::get_if<EarlyExit>(&made)) ADD_FAILURE() << exit->text;
    return std::get<JobPlan>(std::move(made));
}

TEST(JobPreparation, PlanHasProgramArgumentsAndCommonVariables) {
    Options options = some_options();
    options.exports = {{"HOME", "/elsewhere"}, {"MINE", "1"}};
    const JobPlan plan = prepared(options);
    EXPECT_THAT(plan.program, HasSubstr("/sh"));
    EXPECT_THAT(plan.arguments, ElementsAre("sh", "-c", "true"));
    EXPECT_STREQ(plan.environment.value("HOME"), "/elsewhere");
    EXPECT_STREQ(plan.environment.value("MINE"), "1");
    EXPECT_STREQ(plan.environment.value("NPUSHMEM_NPES"), "3");
    EXPECT_STREQ(plan.environment.value("NPUSHMEM_BOOTSTRAP"), "UID");
    EXPECT_STREQ(plan.environment.value("IPATH_NO_BACKTRACE"), "1") << "signals of PEs are not PSM's";
    EXPECT_STREQ(plan.environment.value("FI_OFI_RXM_BUFFER_SIZE"), "2304") << "the transport need not set it";
    EXPECT_STREQ(plan.environment.value("FI_UNIVERSE_SIZE"), "12") << "four lanes of each PE";
    EXPECT_STREQ(plan.environment.value("NPUSHMEM_BOOTSTRAP_UID_SOCK_IFNAME"), "lo");
    EXPECT_EQ(plan.pes.size(), 3U);
    EXPECT_THAT(plan.pes, Each(Field(&PePlan::emulated_host, -1)));
}

TEST(JobPreparation, VariablesOfRxmStayAsTheUserHasSetThem) {
    const char* const variables[] = {"PATH=/bin:/usr/bin", "FI_OFI_RXM_BUFFER_SIZE=16384", nullptr};
    const JobPlan plan = prepared(some_options(), variables);
    EXPECT_STREQ(plan.environment.value("FI_OFI_RXM_BUFFER_SIZE"), "16384");
    EXPECT_STREQ(plan.environment.value("FI_OFI_RXM_MSG_RX_SIZE"), "128");
}

TEST(JobPreparation, NodesDistributePesOverEmulatedHosts) {
    Options options = some_options();
    options.nodes = 2;
    EXPECT_THAT(prepared(options).pes, ElementsAre(Field(&PePlan::emulated_host, 0), Field(&PePlan::emulated_host, 0),
                                                   Field(&PePlan::emulated_host, 1)));
}

TEST(JobPreparation, BindingToCoresBindsEveryPe) {
    Options options = some_options();
    options.bind = Bind::core;
    for (const auto& pe : prepared(options).pes) EXPECT_FALSE(pe.cpus.empty());
}

TEST(JobPreparation, BindingToDevicesGivesEveryPeCpus) {
    Options options = some_options();
    options.bind = Bind::device;
    for (const auto& pe : prepared(options).pes) EXPECT_FALSE(pe.cpus.empty());
}

TEST(JobPreparation, BindingToDevicesReadsTheTopologyFileOfTheJob) {
    Options options = some_options();
    options.bind = Bind::device;
    options.exports = {{"NPUSHMEM_TOPO_FILE", "/nowhere.xml"}};
    const auto made = prepare_job(options, environment);
    ASSERT_TRUE(std::holds_alternative<EarlyExit>(made));
    EXPECT_THAT(std::get<EarlyExit>(made).text, HasSubstr("--bind: NPUSHMEM_TOPO_FILE: cannot read topology file"));
}

TEST(JobPreparation, OnePeHasTheWholeMachineByDefault) {
    Options options = some_options();
    options.npes = 1;
    options.bind = Bind::automatic;
    EXPECT_TRUE(prepared(options).pes.front().cpus.empty());
}

TEST(JobPreparation, MissingProgramIsAnEarlyExit) {
    Options options = some_options();
    options.command = {"no-such-program"};
    auto made = prepare_job(options, environment);
    ASSERT_TRUE(std::holds_alternative<EarlyExit>(made));
    EXPECT_EQ(std::get<EarlyExit>(made).status, exit_not_found);
    EXPECT_THAT(std::get<EarlyExit>(made).text, HasSubstr("npushmem-run: program 'no-such-program'"));
}

TEST(JobPreparation, UniqueIdIsNeededForTheUidBootstrapHoweverItIsNamed) {
    EnvironmentBlock block;
    EXPECT_FALSE(needs_unique_id(block));
    for (const char* name : {"UID", "uid", " Uid ", "auto", "AUTO", "/x/libnpushmem_bootstrap_uid.so"}) {
        block.set("NPUSHMEM_BOOTSTRAP", name);
        EXPECT_TRUE(needs_unique_id(block)) << name;
    }
    for (const char* name : {"pmi", "plugin", "/x/uid/libnpushmem_bootstrap_file.so", "libnpushmem_bootstrap_uid.so"}) {
        block.set("NPUSHMEM_BOOTSTRAP", name);
        EXPECT_FALSE(needs_unique_id(block)) << name;
    }
    block.set("NPUSHMEM_BOOTSTRAP", "PLUGIN");
    for (const char* plugin : {"uid", "./libnpushmem_bootstrap_uid.so"}) {
        block.set("NPUSHMEM_BOOTSTRAP_PLUGIN", plugin);
        EXPECT_TRUE(needs_unique_id(block)) << plugin;
    }
    block.set("NPUSHMEM_BOOTSTRAP_PLUGIN", "file");
    EXPECT_FALSE(needs_unique_id(block));
}

}  // namespace

}  // namespace npushmem::run
