// SPDX-License-Identifier: BSD-3-Clause
// What the runner of contract cases reports of cases that fail, crash, hang, exit, print or are skipped.
#include <gmock/gmock.h>
#include <sys/wait.h>

#include <array>
#include <cstdio>
#include <stdexcept>
#include <string>

namespace {

using ::testing::AllOf;
using ::testing::ContainsRegex;
using ::testing::HasSubstr;
using ::testing::Not;

struct ProgramRun {
    int status = -1;
    std::string output;
};

// Runs a program, by default that of misbehaving.cpp, with its output and errors in one text. `environment`:
// "NAME=VALUE NAME=VALUE".
ProgramRun run(const std::string& environment, const std::string& options,
               const std::string& program = MISBEHAVING_PROGRAM) {
    const std::string command = "env -u GTEST_OUTPUT " + environment + " " + program + " " + options + " 2>&1";
    std::FILE* pipe = ::popen(command.c_str(), "r");
    if (pipe == nullptr) throw std::runtime_error("cannot run " + command);
    ProgramRun out;
    std::array<char, 4096> buffer{};
    for (std::size_t got = 0; (got = std::fread(buffer.data(), 1, buffer.size(), pipe)) > 0;)
        out.output.append(buffer.data(), got);
    const int status = ::pclose(pipe);
    out.status = WIFEXITED(status) ? WEXITSTATUS(status) : -1;
    return out;
}

// One case that misbehaves, and one that passes after it.
constexpr const char* two_cases =
    "--gtest_filter=Misbehaving/one_file.devices_are_named:Misbehaving/own_files.devices_are_named";
constexpr const char* one_case = "--gtest_filter=Misbehaving/one_file.devices_are_named";

TEST(CaseRunner, PassesAndPrintsNothingOfAGoodCase) {
    const ProgramRun good = run("MISBEHAVIOUR=print", one_case);
    EXPECT_EQ(good.status, 0) << good.output;
    EXPECT_THAT(good.output, AllOf(HasSubstr("[  PASSED  ] 1 test"), Not(HasSubstr("a word without a newline"))));
}

TEST(CaseRunner, ReportsFailuresWithTheOutputAndTheLog) {
    const ProgramRun failed = run("MISBEHAVIOUR=print,fail", one_case);
    EXPECT_EQ(failed.status, 1) << failed.output;
    EXPECT_THAT(failed.output,
                AllOf(ContainsRegex("life_cases.cpp:[0-9]+: Failure"), HasSubstr("no such port"),
                      ContainsRegex("the process of the case, pid [0-9]+: "),
                      HasSubstr("rule: devices: each device has a name."), HasSubstr("a word without a newline"),
                      HasSubstr("output of Misbehaving/one_file.devices_are_named"), HasSubstr("opened with depth 4"),
                      HasSubstr("[  FAILED  ] Misbehaving/one_file.devices_are_named")));
}

TEST(CaseRunner, ReportsACrashAndContinuesWithTheNextCase) {
    const ProgramRun crashed = run("MISBEHAVIOUR=print,segmentation", two_cases);
    EXPECT_EQ(crashed.status, 1) << crashed.output;
    EXPECT_THAT(crashed.output,
                AllOf(ContainsRegex("the process of the case was killed by SIGSEGV \\(pid [0-9]+\\)"),
                      HasSubstr("rule: devices: each device has a name."), HasSubstr("a word without a newline"),
                      HasSubstr("[  FAILED  ] 2 tests, listed below"),
                      HasSubstr("[  FAILED  ] Misbehaving/own_files.devices_are_named")));
}

TEST(CaseRunner, ReportsAnExitInTheCaseAndAfterIt) {
    EXPECT_THAT(run("MISBEHAVIOUR=exit", one_case).output, HasSubstr("the process of the case exited with status 7"));
    const ProgramRun late = run("MISBEHAVIOUR=late", one_case);
    EXPECT_EQ(late.status, 1) << late.output;
    EXPECT_THAT(late.output, HasSubstr("after the case had finished without a failure"));
}

TEST(CaseRunner, EndsAHangingCaseAtItsDeadlineAndShowsWhatItDoes) {
    const ProgramRun hung = run("MISBEHAVIOUR=hang,leave MISBEHAVING_DEADLINE=10", one_case);
    EXPECT_EQ(hung.status, 1) << hung.output;
    EXPECT_THAT(hung.output,
                AllOf(HasSubstr("did not finish within 10 s"), ContainsRegex("process [0-9]+, thread [0-9]+ "),
                      ContainsRegex("\\(contract case\\): state [RSD]")));
}

// A program that ignores SIGCHLD, as its parent may have made it, and one that reaps all processes itself.
TEST(CaseRunner, ReportsTheEndOfACaseWhateverTheProgramDoesWithIt) {
    const ProgramRun ignored = run("MISBEHAVIOUR=ignore_ends,exit", one_case);
    EXPECT_EQ(ignored.status, 1) << ignored.output;
    EXPECT_THAT(ignored.output, HasSubstr("the process of the case exited with status 7"));
    const ProgramRun reaped = run("MISBEHAVIOUR=reap_all", one_case);
    EXPECT_EQ(reaped.status, 1) << reaped.output;
    EXPECT_THAT(reaped.output, HasSubstr("was reaped by someone else"));
}

// Otherwise this test would not end: the lost process holds the pipe that run() reads.
TEST(CaseRunner, KillsProcessesThatACaseLeavesBehind) {
    EXPECT_EQ(run("MISBEHAVIOUR=leave", one_case).status, 0);
    EXPECT_EQ(run("MISBEHAVIOUR=leave,segmentation", one_case).status, 1);
}

TEST(CaseRunner, PassesOnTheReasonOfASkip) {
    const ProgramRun skipped = run("", "--gtest_filter=Misbehaving/one_file.puts_arrive_whole");
    EXPECT_EQ(skipped.status, 0) << skipped.output;
    EXPECT_THAT(skipped.output, AllOf(HasSubstr("no pair of PEs offers put"), HasSubstr("[  SKIPPED ] 1 test")));
}

TEST(CaseRunner, ReportsTheCrashOfOnePeByItsNumber) {
    const char* filter = "--gtest_filter=Misbehaving/*.processes_reach_each_other";
    const ProgramRun good = run("", filter);
    EXPECT_EQ(good.status, 0) << good.output;
    const ProgramRun crashed = run("MISBEHAVIOUR=pe", filter);
    EXPECT_EQ(crashed.status, 1) << crashed.output;
    EXPECT_THAT(crashed.output, AllOf(ContainsRegex("the process of PE 1 was killed by SIGSEGV \\(pid [0-9]+\\)"),
                                      Not(HasSubstr("the process of PE 0 was")), Not(HasSubstr("within 60 s"))));
}

TEST(CaseRunner, StatesThePeAndTheProcessOfAFailure) {
    const ProgramRun failed = run("MISBEHAVIOUR=no_address", "--gtest_filter=*one_file.processes_reach_each_other");
    EXPECT_EQ(failed.status, 1) << failed.output;
    EXPECT_THAT(failed.output,
                AllOf(ContainsRegex("PE 1, pid [0-9]+: .*an exception ended the case: address: it has no"),
                      Not(HasSubstr("PE 0, pid")), HasSubstr("rule: put and atomic work between processes.")));
}

TEST(ContractPrograms, RefuseVariablesThatNobodyReads) {
    const ProgramRun transport = run("", "'fault(self)' -c FAULT_SED=3", TRANSPORT_PROGRAM);
    EXPECT_EQ(transport.status, 2) << transport.output;
    EXPECT_THAT(transport.output, AllOf(HasSubstr("there is no variable NPUSHMEM_FAULT_SED"),
                                        HasSubstr("did you mean NPUSHMEM_FAULT_SEED?"), HasSubstr("FAULT_DELAY")));
    const ProgramRun bootstrap = run("", "uid -c NPUSHMEM_BOOTSTRAP_TIMEOT=3s", BOOTSTRAP_PROGRAM);
    EXPECT_EQ(bootstrap.status, 2) << bootstrap.output;
    EXPECT_THAT(bootstrap.output, HasSubstr("did you mean NPUSHMEM_BOOTSTRAP_TIMEOUT?"));
}

TEST(ContractPrograms, AcceptVariablesWithAndWithoutThePrefix) {
    for (const char* given : {"-c FAULT_SEED=3", "-c NPUSHMEM_FAULT_SEED=3", "-c TIMEOUT=60s"}) {
        const ProgramRun run_with =
            run("", std::string("'fault(self)' --filter '*one_file.devices_are_named' ") + given, TRANSPORT_PROGRAM);
        EXPECT_EQ(run_with.status, 0) << given << "\n" << run_with.output;
    }
    for (const char* given : {"-c BOOTSTRAP_TIMEOUT=30s", "-c NPUSHMEM_BOOTSTRAP_TIMEOUT=30s"}) {
        const ProgramRun run_with =
            run("", std::string("uid --ranks 1 --filter '*ranks_are_numbered' ") + given, BOOTSTRAP_PROGRAM);
        EXPECT_EQ(run_with.status, 0) << given << "\n" << run_with.output;
    }
}

TEST(ContractPrograms, ListCasesWithTheirRules) {
    const ProgramRun transport = run("", "self --list --filter '*named:*forget_keeps*'", TRANSPORT_PROGRAM);
    EXPECT_EQ(transport.status, 0) << transport.output;
    EXPECT_THAT(transport.output,
                AllOf(HasSubstr("self/one_file.\n  devices_are_named\n      devices: each device has a name.\n"),
                      HasSubstr("  forget_keeps_mapped_memory\n      forget: mapped memory"),
                      Not(HasSubstr("puts_arrive_whole"))));
    for (const char* options : {"uid --list --ranks 3", "uid --list --of 3"}) {
        const ProgramRun bootstrap = run("", options, BOOTSTRAP_PROGRAM);
        EXPECT_EQ(bootstrap.status, 0) << bootstrap.output;
        EXPECT_THAT(bootstrap.output,
                    AllOf(HasSubstr("  describes_itself\n      The table: "), HasSubstr("uid/3_ranks.\n"),
                          HasSubstr("  gathers_in_place\n      allgather: `send` may be")));
    }
    EXPECT_EQ(run("", "self --list --filter nothing", TRANSPORT_PROGRAM).status, 2);
}

TEST(CaseRunner, GivesTheProcessesTheProgramsOwnOptionsAndOneCaseOnly) {
    const ProgramRun verbose = run("NPUSHMEM_CONTRACT_VERBOSE=1 MISBEHAVIOUR=print GTEST_SHUFFLE=1",
                                   std::string("--own=shoes ") + two_cases + " --gtest_repeat=1");
    EXPECT_EQ(verbose.status, 0) << verbose.output;
    std::size_t count = 0;
    for (std::size_t at = 0; (at = verbose.output.find("own option shoes", at)) != std::string::npos; ++at) ++count;
    EXPECT_EQ(count, 3U) << "in the program and in each process of a case\n" << verbose.output;
}

TEST(CaseRunner, FindsCasesWhoseNamesHaveMarksOfFilters) {
    const ProgramRun marked = run("", "'--gtest_filter=a?name?with?marks/one_file.devices_are_named'");
    EXPECT_EQ(marked.status, 0) << marked.output;
    EXPECT_THAT(marked.output, HasSubstr("[  PASSED  ] 1 test"));
}

TEST(CaseRunner, RunsCasesInTheProgramItselfOnRequest) {
    const ProgramRun in_place = run("NPUSHMEM_CONTRACT_IN_PROCESS=1 MISBEHAVIOUR=print,fail", two_cases);
    EXPECT_EQ(in_place.status, 1) << in_place.output;
    EXPECT_THAT(in_place.output, AllOf(HasSubstr("no such port"), HasSubstr("a word without a newline"),
                                       Not(HasSubstr("---- output of")), HasSubstr("[  FAILED  ] 2 tests")));
    EXPECT_EQ(run("NPUSHMEM_CONTRACT_IN_PROCESS=1 MISBEHAVIOUR=exit", two_cases).status, 7);
}

}  // namespace
