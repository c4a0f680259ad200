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

// Runs the program in misbehaving.cpp, with its output and errors in one text. `environment`: "NAME=VALUE NAME=VALUE".
ProgramRun run(const std::string& environment, const std::string& options) {
    const std::string command =
        "env -u GTEST_OUTPUT " + environment + " " + MISBEHAVING_PROGRAM + " " + options + " 2>&1";
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
    EXPECT_THAT(
        failed.output,
        AllOf(ContainsRegex("life_cases.cpp:[0-9]+: Failure"), HasSubstr("no such port"),
              HasSubstr("a word without a newline"), HasSubstr("output of Misbehaving/one_file.devices_are_named"),
              HasSubstr("opened with depth 4"), HasSubstr("[  FAILED  ] Misbehaving/one_file.devices_are_named")));
}

TEST(CaseRunner, ReportsACrashAndContinuesWithTheNextCase) {
    const ProgramRun crashed = run("MISBEHAVIOUR=print,segmentation", two_cases);
    EXPECT_EQ(crashed.status, 1) << crashed.output;
    EXPECT_THAT(crashed.output,
                AllOf(HasSubstr("the process of the case was killed by SIGSEGV"), HasSubstr("a word without a newline"),
                      HasSubstr("[  FAILED  ] 2 tests, listed below"),
                      HasSubstr("[  FAILED  ] Misbehaving/own_files.devices_are_named")));
}

TEST(CaseRunner, ReportsAnExitInTheCaseAndAfterIt) {
    EXPECT_THAT(run("MISBEHAVIOUR=exit", one_case).output, HasSubstr("the process of the case exited with status 7"));
    const ProgramRun late = run("MISBEHAVIOUR=late", one_case);
    EXPECT_EQ(late.status, 1) << late.output;
    EXPECT_THAT(late.output, HasSubstr("exited with status 9 after the case had finished without a failure"));
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
    EXPECT_THAT(crashed.output, AllOf(HasSubstr("the process of PE 1 was killed by SIGSEGV"),
                                      Not(HasSubstr("the process of PE 0 was")), Not(HasSubstr("within 60 s"))));
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
