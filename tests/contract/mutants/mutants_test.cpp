// SPDX-License-Identifier: BSD-3-Clause
// The contract is strict: a sound transport passes all cases, and each seeded defect fails the cases that are named for
// it, for the reason that is named. The program executes itself with NPUSHMEM_MUTANT=<transport>/<defect>; then it also
// has the contract's cases, over that transport with that defect.
//
// A slow machine catches no defect. Waits elapse only in cases whose row says so (Ending::times_out); for these alone
// they are short, and the sound transport passes the same cases with the same short waits. A wait elapses after a
// number of calls as well as after a time (Deadline), so that a process that got no processor has not waited. In a case
// that crashes or hangs, the defect says so at that point.
#include <gmock/gmock.h>
#include <sys/file.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <unistd.h>

#include <array>
#include <cstdlib>
#include <fstream>
#include <iostream>
#include <map>
#include <set>
#include <sstream>
#include <stdexcept>

#include "tests/contract/mutants/sound_transports.hpp"

namespace npushmem::contract {
namespace {

using ::testing::AllOf;
using ::testing::Contains;
using ::testing::HasSubstr;
using ::testing::Not;

// Where the cases run: in the started process, or each in a process of its own, as usual.
enum class CasesIn : bool { started_process, own_processes };

struct Execution {
    int wait_status = 0;
    std::string output;

    [[nodiscard]] bool exited_with(int status) const {
        return WIFEXITED(wait_status) && WEXITSTATUS(wait_status) == status;
    }
};

[[noreturn]] void execute_self(const std::string& name, CasesIn where, const std::vector<std::string>& arguments,
                               unsigned seconds) {
    (void)::setenv("NPUSHMEM_MUTANT", name.c_str(), 1);
    (void)::unsetenv("NPUSHMEM_CONTRACT_IN_PROCESS");
    if (where == CasesIn::started_process) (void)::setenv("NPUSHMEM_CONTRACT_IN_PROCESS", "1", 1);
    for (const char* variable : {"GTEST_OUTPUT", "GTEST_TOTAL_SHARDS", "GTEST_SHARD_INDEX"})
        (void)::unsetenv(variable);  // they are for the tests of this program
    std::vector<char*> argv{const_cast<char*>("contract_mutants")};
    for (const auto& argument : arguments) argv.push_back(const_cast<char*>(argument.c_str()));
    argv.push_back(nullptr);
    (void)::alarm(seconds);
    (void)::execv("/proc/self/exe", argv.data());
    std::_Exit(127);
}

// Executes this program; SIGALRM ends it after `seconds`.
Execution run_self(const std::string& name, CasesIn where, const std::vector<std::string>& arguments,
                   unsigned seconds) {
    const int output = ::memfd_create("contract_mutants", MFD_CLOEXEC);
    if (output < 0) throw std::runtime_error("cannot make memory for the output of a mutant");
    (void)std::fflush(nullptr);
    const pid_t child = ::fork();
    if (child < 0) throw std::runtime_error("cannot start a process for a mutant");
    if (child == 0) {
        (void)::dup2(output, STDOUT_FILENO);
        (void)::dup2(output, STDERR_FILENO);
        execute_self(name, where, arguments, seconds);
    }
    Execution out;
    (void)::waitpid(child, &out.wait_status, 0);
    std::array<char, 65536> part{};
    for (off_t at = 0;;) {
        const ssize_t bytes = ::pread(output, part.data(), part.size(), at);
        if (bytes <= 0) break;
        out.output.append(part.data(), static_cast<std::size_t>(bytes));
        at += bytes;
    }
    ::close(output);
    return out;
}

constexpr unsigned max_seconds = 300;  // of a case

// One expectation: the case fails if the transport has the defect.
struct Expected {
    const SoundTransport* transport;
    const DefectRow* defect;
    std::string name_of_case;
    std::string reason;

    [[nodiscard]] std::string mutant() const { return transport->name + "/" + defect->name; }
};

void PrintTo(const Expected& expected, std::ostream* out) {
    *out << expected.mutant() << ", " << expected.name_of_case << ": " << expected.defect->description;
}

std::vector<Expected> all_expected() {
    std::vector<Expected> out;
    for (const SoundTransport& transport : sound_transports())
        for (const DefectRow& row : defects())
            if (std::find(transport.defects.begin(), transport.defects.end(), row.defect) != transport.defects.end())
                for (const CatchingCase& each : row.cases) out.push_back({&transport, &row, each.name, each.reason});
    return out;
}

// A row of the table in the working directory, which all runs of this program update.
void record(const Expected& expected, bool caught) {
    const char* const file = "contract_mutants.tsv";
    std::fstream(file, std::ios::app).close();
    std::FILE* const locked = std::fopen(file, "r");
    ASSERT_NE(locked, nullptr);
    (void)::flock(::fileno(locked), LOCK_EX);
    std::set<std::string> lines;
    const std::string start = expected.mutant() + "\t" + expected.name_of_case + "\t";
    std::ifstream old(file);
    for (std::string line; std::getline(old, line);)
        if (!line.starts_with(start)) lines.insert(line);
    lines.insert(start + (caught ? "caught" : "NOT CAUGHT") + "\t" + expected.reason + "\t" +
                 expected.defect->description);
    std::ofstream table(file, std::ios::trunc);
    for (const auto& line : lines) table << line << "\n";
    table.close();
    (void)std::fclose(locked);  // with its lock
}

// The output without the lines in which GoogleTest names the tests: a reason may be a word of a case's name.
std::string failures_in(const std::string& output) {
    std::string out;
    std::istringstream lines(output);
    for (std::string line; std::getline(lines, line);)
        if (!line.starts_with("[") && !line.starts_with("Note: ") && !line.starts_with("---- output of "))
            out += line + "\n";
    return out;
}

// Whether the failures show this end, and no other.
void expect_ending(const std::string& failures, Ending ending) {
    const bool timed_out = failures.find("timeout") != std::string::npos;
    EXPECT_EQ(timed_out, ending == Ending::times_out) << "a wait elapses exactly if the row says so";
    const bool crashed = failures.find("SEGV") != std::string::npos;
    EXPECT_EQ(crashed, ending == Ending::crashes) << "the process crashes exactly if the row says so";
    const bool hung = failures.find("did not finish within") != std::string::npos;
    EXPECT_EQ(hung, ending == Ending::hangs) << "the process hangs exactly if the row says so";
}

class Mutant : public ::testing::TestWithParam<Expected> {};

TEST_P(Mutant, IsCaught) {
    const Expected& expected = GetParam();
    const std::string test = expected.transport->name + "/own_files." + expected.name_of_case;
    const Ending ending = expected.defect->ending;
    // A case that crashes or hangs is caught by the process that started it.
    const bool returns = ending == Ending::fails || ending == Ending::times_out;
    const Execution run = run_self(expected.mutant(), returns ? CasesIn::started_process : CasesIn::own_processes,
                                   {"--gtest_filter=" + test}, max_seconds);
    EXPECT_TRUE(run.exited_with(1)) << "wait status " << run.wait_status << " instead of a failed test";
    EXPECT_THAT(run.output, AllOf(HasSubstr("[==========] 1 test from"), HasSubstr("[  FAILED  ] " + test)));
    const std::string failures = failures_in(run.output);
    EXPECT_TRUE(failures.find(expected.reason) != std::string::npos)
        << "the case fails, but not because of the defect: \"" << expected.reason << "\" is missing";
    expect_ending(failures, ending);
    if (HasFailure()) std::cout << run.output;
    record(expected, !HasFailure());
}

std::string test_name(const ::testing::TestParamInfo<Expected>& info) {
    return info.param.transport->name + "_" + info.param.defect->name + "_" + info.param.name_of_case;
}
INSTANTIATE_TEST_SUITE_P(Contract, Mutant, ::testing::ValuesIn(all_expected()), test_name);

// Both layouts apart, so that they can run at once.
class Sound : public ::testing::TestWithParam<std::string> {};

TEST_P(Sound, PassesAllCases) {
    const std::string& suite = GetParam();
    const Execution run = run_self(suite.substr(0, suite.find('/')) + "/none", CasesIn::own_processes,
                                   {"--gtest_filter=" + suite + ".*"}, 600);
    EXPECT_TRUE(run.exited_with(0)) << "wait status " << run.wait_status;
    for (const Expected& each : all_expected()) {
        if (each.transport->name + "/none" != suite.substr(0, suite.find('/')) + "/none") continue;
        EXPECT_THAT(run.output, HasSubstr("[       OK ] " + suite + "." + each.name_of_case))
            << "a case that is skipped catches nothing";
    }
    if (HasFailure()) std::cout << run.output;
}

class SoundWithShortWaits : public ::testing::TestWithParam<std::string> {};

TEST_P(SoundWithShortWaits, PassesTheCasesThatTimeOut) {
    std::set<std::string> tests;
    for (const Expected& each : all_expected())
        if (each.transport->name == GetParam() && each.defect->ending == Ending::times_out)
            tests.insert(GetParam() + "/own_files." + each.name_of_case);
    ASSERT_FALSE(tests.empty());
    std::string filter;
    for (const auto& each : tests) filter += ":" + each;
    const Execution run = run_self(GetParam() + "/none_with_short_waits", CasesIn::started_process,
                                   {"--gtest_filter=" + filter.substr(1)}, max_seconds);
    EXPECT_TRUE(run.exited_with(0)) << "wait status " << run.wait_status << "\n" << run.output;
    for (const auto& each : tests) EXPECT_THAT(run.output, HasSubstr("[       OK ] " + each));
}

std::vector<std::string> transports() {
    std::vector<std::string> out;
    for (const SoundTransport& each : sound_transports()) out.push_back(each.name);
    return out;
}
INSTANTIATE_TEST_SUITE_P(Contract, SoundWithShortWaits, ::testing::ValuesIn(transports()));

std::vector<std::string> suites() {
    std::vector<std::string> out;
    for (const SoundTransport& each : sound_transports())
        for (const char* layout : {"/one_file", "/own_files"}) out.push_back(each.name + layout);
    return out;
}
std::string suite_name(const ::testing::TestParamInfo<std::string>& info) {
    std::string name = info.param;
    std::replace(name.begin(), name.end(), '/', '_');
    return name;
}
INSTANTIATE_TEST_SUITE_P(Contract, Sound, ::testing::ValuesIn(suites()), suite_name);

std::set<std::string> cases_of_the_contract() {
    const Execution run = run_self("reference/none", CasesIn::started_process,
                                   {"--gtest_list_tests", "--gtest_filter=reference/own_files.*"}, 60);
    std::set<std::string> out;
    std::istringstream lines(run.output);
    for (std::string line; std::getline(lines, line);)
        if (line.starts_with("  ")) out.insert(line.substr(2, line.find_first_of(" \t#", 2) - 2));
    return out;
}

TEST(Mutants, ReasonsAreNotFoundInTheNamesOfTests) {
    const std::string output =
        "Note: Google Test filter = reference/own_files.wrong_puts\n[ RUN      ] reference/own_files.wrong_puts\n"
        "---- output of reference/own_files.wrong_puts\na put was accepted\n"
        "[  FAILED  ] reference/own_files.wrong_puts (1 ms)\n";
    EXPECT_EQ(failures_in(output), "a put was accepted\n");
}

TEST(Defects, EachCaseOfTheContractCatchesOneOrIsExempt) {
    const std::set<std::string> all = cases_of_the_contract();
    EXPECT_THAT(all, Contains("puts_arrive_whole"));
    std::set<std::string> uncovered = all;
    for (const DefectRow& row : defects())
        for (const CatchingCase& each : row.cases) {
            EXPECT_TRUE(all.count(each.name) == 1) << row.name << ": there is no case " << each.name;
            uncovered.erase(each.name);
        }
    for (const ExemptCase& each : exempt_cases()) {
        EXPECT_TRUE(uncovered.erase(each.name) == 1) << each.name << " is exempt, but does not exist or is covered";
        EXPECT_STRNE(each.reason, "");
    }
    for (const auto& each : uncovered) ADD_FAILURE() << "no defect shows that the case " << each << " can fail";
}

TEST(Defects, EachHasOneRowWithAName) {
    std::set<std::string> names;
    std::set<Defect> defects_with_row;
    for (const DefectRow& row : defects()) {
        EXPECT_TRUE(names.insert(row.name).second) << row.name;
        EXPECT_TRUE(defects_with_row.insert(row.defect).second) << row.name;
        EXPECT_FALSE(row.cases.empty()) << row.name;
        for (const CatchingCase& each : row.cases) EXPECT_STRNE(each.reason, "") << row.name << ", " << each.name;
    }
    EXPECT_EQ(defects_with_row.size(), static_cast<std::size_t>(Defect::nameless_device));  // the last one; 0 is none
}

}  // namespace
}  // namespace npushmem::contract

int main(int argc, char** argv) {
    if (const char* name = std::getenv("NPUSHMEM_MUTANT"))
        npushmem::contract::add_transport_contract(npushmem::contract::mutant(name));
    ::testing::InitGoogleMock(&argc, argv);
    return RUN_ALL_TESTS();
}
