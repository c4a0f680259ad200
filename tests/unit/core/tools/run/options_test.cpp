// SPDX-License-Identifier: BSD-3-Clause
#include "core/tools/run/options.hpp"

#include <gmock/gmock.h>

#include "core/tools/run/exit_record.hpp"
#include "core/tools/run/explore_job.hpp"

namespace npushmem::run {
namespace {

using ::testing::AllOf;
using ::testing::ElementsAre;
using ::testing::HasSubstr;

Options accepted(const std::vector<std::string>& arguments) {
    auto parsed = parse_options(arguments);
    if (auto* exit = std::get_if<EarlyExit>(&parsed)) {
        ADD_FAILURE() << exit->text;
        return {};
    }
    return std::get<Options>(parsed);
}

std::string refused(const std::vector<std::string>& arguments) {
    auto parsed = parse_options(arguments);
    if (std::holds_alternative<Options>(parsed)) return "accepted";
    EXPECT_EQ(std::get<EarlyExit>(parsed).status, exit_usage);
    return std::get<EarlyExit>(parsed).text;
}

TEST(Options, DefaultsAreOnePeOnThisHost) {
    const Options options = accepted({"./app"});
    EXPECT_EQ(options.npes, 1);
    EXPECT_EQ(options.nodes, 0);
    EXPECT_FALSE(options.tag_output);
    EXPECT_FALSE(options.timeout.has_value());
    EXPECT_THAT(options.command, ElementsAre("./app"));
}

TEST(Options, ParsesAllOptions) {
    const Options options = accepted({"-n", "8", "--nodes", "2", "--map-by=round-robin", "-x", "A=1", "-x", "B=x=y z",
                                      "-t", "--bind=core", "--timeout", "1.5", "-v", "app"});
    EXPECT_EQ(options.npes, 8);
    EXPECT_EQ(options.nodes, 2);
    EXPECT_EQ(options.map_by, MapBy::round_robin);
    ASSERT_EQ(options.exports.size(), 2U);
    EXPECT_EQ(options.exports[1].name, "B");
    EXPECT_EQ(options.exports[1].value, "x=y z");
    EXPECT_TRUE(options.tag_output);
    EXPECT_EQ(options.bind, Bind::core);
    EXPECT_EQ(options.timeout, std::chrono::milliseconds(1500));
    EXPECT_TRUE(options.verbose);
}

TEST(Options, ChecksKernelsBySchedule) {
    const Options lazy = accepted({"--npu-check", "app"});
    EXPECT_EQ(lazy.npu_check, "lazy");
    EXPECT_THAT(lazy.command, ElementsAre("app"));
    ASSERT_EQ(lazy.exports.size(), 2U);
    EXPECT_EQ(lazy.exports[1].name, "NPUSHMEM_NPU_SCHEDULE");
    EXPECT_FALSE(needs_scheduler(lazy));
    EXPECT_FALSE(needs_scheduler(accepted({"--npu-check=eager", "app"})));
    const Options explored = accepted({"--npu-check=explore:2", "--npu-check-runs", "7", "app"});
    EXPECT_EQ(explored.npu_check_runs, 7U);
    for (const char* schedule : {"explore:2", "explore", "random:3", "replay:4=1"})
        EXPECT_TRUE(needs_scheduler(accepted({std::string("--npu-check=") + schedule, "app"})));
    EXPECT_FALSE(needs_scheduler(accepted({"app"})));
    EXPECT_THAT(refused({"--npu-check=often", "app"}), HasSubstr("--npu-check: schedule 'often' must be"));
}

TEST(Options, PassesArgumentsBehindTheProgramToIt) {
    EXPECT_THAT(accepted({"-n2", "app", "-n", "5", "--help", "--", "-x"}).command,
                ElementsAre("app", "-n", "5", "--help", "--", "-x"));
    EXPECT_THAT(accepted({"-n", "2", "--", "-odd-name", "--version"}).command, ElementsAre("-odd-name", "--version"));
    EXPECT_THAT(accepted({"-x", "A=1", "app", "B=2"}).command, ElementsAre("app", "B=2"));
    EXPECT_THAT(accepted({"app", ""}).command, ElementsAre("app", ""));
}

TEST(Options, AcceptsNpAsMpirunDoes) {
    for (const char* option : {"-np", "--np"}) {
        const Options options = accepted({"-v", "--bind", "none", option, "2", "app", "-np", "3"});
        EXPECT_EQ(options.npes, 2) << option;
        EXPECT_TRUE(options.verbose) << option;
        EXPECT_THAT(options.command, ElementsAre("app", "-np", "3")) << option;
    }
    EXPECT_THAT(accepted({"--", "-np", "3"}).command, ElementsAre("-np", "3"));
    EXPECT_THAT(accepted({"--rsh", "-np", "app", "-np"}).command, ElementsAre("app", "-np"));
    EXPECT_THAT(refused({"-np", "0", "app"}), HasSubstr("not '0'"));
    EXPECT_THAT(refused({"-np"}), HasSubstr("-n"));
}

TEST(Options, HelpAndVersionSucceed) {
    auto help = parse_options({"--help"});
    EXPECT_EQ(std::get<EarlyExit>(help).status, 0);
    EXPECT_THAT(std::get<EarlyExit>(help).text, AllOf(HasSubstr("[--] program [arguments]"), HasSubstr("Exit status")));
    for (const char* option : {"--version", "-V"}) {
        auto version = parse_options({option});
        EXPECT_EQ(std::get<EarlyExit>(version).status, 0);
        EXPECT_THAT(std::get<EarlyExit>(version).text, HasSubstr("npushmem-run"));
    }
}

TEST(Options, MistakesReportTheOptionAndTheValue) {
    EXPECT_THAT(refused({}), HasSubstr("no program is named"));
    EXPECT_THAT(refused({"-n", "4"}), HasSubstr("no program is named"));
    EXPECT_THAT(refused({"-n", "4", "--"}), HasSubstr("no program is named"));
    for (const char* bad : {"0", "-1", "x", "1.5", "", "99999999999999999999", "1048577", " 3"})
        EXPECT_THAT(refused({"-n", bad, "app"}), HasSubstr(std::string("not '") + bad + "'")) << bad;
    EXPECT_THAT(refused({"-n", "4", "--nodes", "5", "app"}), AllOf(HasSubstr("--nodes 5"), HasSubstr("-n is 4")));
    EXPECT_THAT(refused({"--nodes", "0", "app"}), HasSubstr("--nodes must be"));
    EXPECT_THAT(refused({"--map-by", "random", "app"}), HasSubstr("block, round-robin, not 'random'"));
    EXPECT_THAT(refused({"--bind", "socket", "app"}), HasSubstr("not 'socket'"));
    for (const char* bad : {"0", "x", "1.2.3", ".", "-1", "1e99", "inf"})
        EXPECT_THAT(refused({"--timeout", bad, "app"}), HasSubstr("--timeout")) << bad;
    EXPECT_THAT(refused({"-n"}), HasSubstr("-n"));
}

TEST(Options, ExportsMustBeAssignmentsOfOthersVariables) {
    EXPECT_THAT(refused({"-x", "FOO", "app"}), HasSubstr("VAR=value, not 'FOO'"));
    EXPECT_THAT(refused({"-x", "=1", "app"}), HasSubstr("'' is not the name of a variable"));
    EXPECT_THAT(refused({"-x", "1A=1", "app"}), HasSubstr("'1A' is not the name of a variable"));
    EXPECT_THAT(refused({"-x", "A B=1", "app"}), HasSubstr("'A B' is not the name of a variable"));
    EXPECT_THAT(refused({"-x", "NPUSHMEM_PE=1", "app"}), HasSubstr("sets NPUSHMEM_PE itself"));
    EXPECT_THAT(refused({"--nodes", "1", "-x", "NPUSHMEM_EMULATED_HOST=1", "app"}), HasSubstr("contradicts --nodes"));
    EXPECT_EQ(accepted({"-x", "NPUSHMEM_EMULATED_HOST=1", "app"}).exports.size(), 1U);
    EXPECT_EQ(accepted({"-x", "EMPTY=", "app"}).exports[0].value, "");
}

TEST(Options, HostsAndTheRemoteShell) {
    const Options options = accepted({"-n", "5", "--hosts", "a, b,c", "--rsh", "ssh -p 22", "app"});
    EXPECT_THAT(options.hosts, ElementsAre("a", "b", "c"));
    EXPECT_THAT(options.rsh, ElementsAre("ssh", "-p", "22"));
    EXPECT_FALSE(options.remote_run.empty());
    EXPECT_TRUE(accepted({"app"}).hosts.empty());
    EXPECT_THAT(refused({"-n", "2", "--hosts", "a,b,c", "app"}), HasSubstr("at least as many PEs, but -n is 2"));
    EXPECT_THAT(refused({"--hosts", " ,", "app"}), HasSubstr("names no host"));
    EXPECT_THAT(refused({"--hosts", "a", "--rsh", " ", "app"}), HasSubstr("--rsh is empty"));
    EXPECT_THAT(refused({"-n", "2", "--hosts", "a", "--nodes", "2", "app"}), HasSubstr("contradict"));
}

TEST(Options, MisspeltOptionIsNotTakenForTheProgram) {
    EXPECT_THAT(refused({"--verbos", "app"}), AllOf(HasSubstr("'--verbos'"), HasSubstr("--verbose")));
    EXPECT_THAT(refused({"--tiemout=3", "app"}), HasSubstr("did you mean --timeout?"));
    EXPECT_THAT(refused({"-q", "app"}), HasSubstr("unknown option '-q'"));
}

}  // namespace
}  // namespace npushmem::run
