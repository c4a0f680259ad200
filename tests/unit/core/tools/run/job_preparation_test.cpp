#include "core/tools/run/job_preparation.hpp"

#include <gmock/gmock.h>

#include "core/tools/run/exit_codes.hpp"

namespace npushmem::run {
namespace {

using ::testing::Each;
using ::testing::ElementsAre;
using ::testing::Field;
using ::testing::HasSubstr;

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
    EXPECT_STREQ(plan.environment.value("FI_OFI_RXM_BUFFER_SIZE"), "4096") << "the transport need not set it";
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

TEST(JobPreparation, HostsAreDealtWithNodes) {
    Options options = some_options();
    options.nodes = 2;
    EXPECT_THAT(prepared(options).pes, ElementsAre(Field(&PePlan::emulated_host, 0), Field(&PePlan::emulated_host, 0),
                                                   Field(&PePlan::emulated_host, 1)));
}

TEST(JobPreparation, BindingOneByOneLeavesNobodyUnbound) {
    Options options = some_options();
    options.bind = Bind::core;
    for (const auto& pe : prepared(options).pes) EXPECT_FALSE(pe.cpus.empty());
}

TEST(JobPreparation, BindingToDevicesGivesEveryPeCpus) {
    Options options = some_options();
    options.bind = Bind::device;
    for (const auto& pe : prepared(options).pes) EXPECT_FALSE(pe.cpus.empty());
}

TEST(JobPreparation, BindingToDevicesLooksAtTheMachineThatTheJobWillSee) {
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
