// SPDX-License-Identifier: BSD-3-Clause
// Calls that fail while the program goes on: how the job ends, and how their reports reach the user.
#include <gmock/gmock.h>
#include <unistd.h>

#include <csignal>
#include <filesystem>
#include <fstream>
#include <set>
#include <sstream>

#include "core/tools/run/exit_record.hpp"
#include "tests/integration/run/job_under_test.hpp"

namespace npushmem::run {
namespace {

using ::testing::AllOf;
using ::testing::HasSubstr;
using ::testing::Not;

const std::string mistake = "error api: npushmem_long_p: PE 99 does not exist";

struct Ended {
    int status;
    std::set<std::string> words;  // of the PEs' reports
    std::string errors;
};

std::vector<std::string> failing_job(std::vector<std::string> options, const std::string& part) {
    options.insert(options.end(), {RUN_TEST_NPUSHMEM, part});
    return options;
}

JobSettings with_uid() {
    JobSettings settings;
    settings.with_bootstrap = true;
    return settings;
}

Ended run(std::vector<std::string> options, const std::string& part, int reports = 0) {
    JobUnderTest job(failing_job(std::move(options), part), with_uid());
    Ended ended;
    for (const auto& report : job.reports(reports)) ended.words.insert(report.word);
    ended.status = job.end();
    ended.errors = job.errors();
    return ended;
}

// The PEs in "0-2,5".
std::multiset<int> numbers_in(const std::string& ranges) {
    std::multiset<int> out;
    std::istringstream parts(ranges);
    for (std::string part; std::getline(parts, part, ',');) {
        int first = -1;
        int last = -1;
        if (std::sscanf(part.c_str(), "%d-%d", &first, &last) < 2) last = first;
        for (int pe = first; pe <= last; ++pe) out.insert(pe);
    }
    return out;
}

// The PEs whose mistake is reported in `errors`, in lines of one PE or of several.
std::multiset<int> reported(const std::string& errors) {
    std::multiset<int> out;
    std::istringstream lines(errors);
    for (std::string line; std::getline(lines, line);) {
        const auto at = line.find(mistake);
        if (at == std::string::npos) continue;
        const bool merged = line.starts_with("npushmem PEs ");
        const auto begin = merged ? line.find_first_of("0123456789") : line.find("pe ") + 3;
        out.merge(numbers_in(line.substr(begin, line.find_first_of(merged ? ":" : "/", begin) - begin)));
    }
    return out;
}

TEST(FailedCalls, FailTheJobThatCannotKnowOfThem) {
    const Ended job = run({"-n", "3"}, "mistaken");
    EXPECT_EQ(job.status, 1);
    EXPECT_THAT(job.errors, HasSubstr("npushmem-run: 3 calls failed (1 on each of PEs 0-2)"));
    EXPECT_EQ(reported(job.errors), (std::multiset<int>{0, 1, 2})) << job.errors;
}

TEST(FailedCalls, BeforeInitCountAsWell) {
    const Ended job = run({"-n", "1"}, "early-put");
    EXPECT_EQ(job.status, 1);
    EXPECT_THAT(job.errors, AllOf(HasSubstr("call npushmem_init first"), HasSubstr("1 call failed (1 on PE 0)")));
}

TEST(FailedCalls, ARefusedCollectiveCounts) {
    const Ended job = run({"-n", "2", "-x", "NPUSHMEM_CHECK=1"}, "refused");
    EXPECT_EQ(job.status, 1);
    EXPECT_THAT(job.errors, HasSubstr("2 calls failed (1 on each of PEs 0-1)"));
}

TEST(FailedCalls, OfCollectivesCountWhenTheProgramIgnoresTheirCodes) {
    const Ended job = run({"-n", "2"}, "collectives");
    EXPECT_EQ(job.status, 1);
    EXPECT_THAT(job.errors, HasSubstr("4 calls failed (2 on each of PEs 0-1)"));
}

TEST(FailedCalls, OfCollectivesDoNotCountWhenTheProgramAsksForThem) {
    const Ended job = run({"-n", "2"}, "asked-collectives");
    EXPECT_EQ(job.status, 0) << job.errors;
    EXPECT_THAT(job.errors, Not(HasSubstr("calls failed")));
}

TEST(FailedCalls, AreTheProgramsOwnAffairWhereItAsked) {
    const Ended job = run({"-n", "2"}, "asked", 2);
    EXPECT_EQ(job.status, 0) << job.errors;
    EXPECT_EQ(job.words.count("code-0"), 0U);
    EXPECT_THAT(job.errors, AllOf(HasSubstr(mistake), Not(HasSubstr("calls failed"))));
}

TEST(FailedCalls, CountWhereTheProgramForgotThemUnasked) {
    const Ended job = run({"-n", "2"}, "cleared", 2);
    EXPECT_EQ(job.status, 1);
    EXPECT_THAT(job.words, ::testing::ElementsAre("code-0"));
    EXPECT_THAT(job.errors, HasSubstr("2 calls failed"));
}

TEST(FailedCalls, ThatReturnTheFailureAreTheProgramsOwnAffair) {
    const Ended job = run({"-n", "2"}, "returned", 2);
    EXPECT_EQ(job.status, 0) << job.errors;
    EXPECT_THAT(job.words, ::testing::ElementsAre("shown"));
    EXPECT_THAT(job.errors, HasSubstr("npushmem_align"));
}

TEST(FailedCalls, AreOnlyReportedWhereTheUserWantsThat) {
    const Ended job = run({"-n", "2", "-x", "NPUSHMEM_ON_ERROR=report"}, "mistaken");
    EXPECT_EQ(job.status, 0);
    EXPECT_EQ(reported(job.errors), (std::multiset<int>{0, 1})) << job.errors;
    EXPECT_THAT(job.errors, Not(HasSubstr("calls failed")));
}

TEST(FailedCalls, OfAPeThatIsKilledAtOnceAreReportedBeforeItsEnd) {
    const Ended job = run({"-n", "3"}, "last-words");
    EXPECT_EQ(job.status, 128 + SIGKILL);
    EXPECT_EQ(reported(job.errors), (std::multiset<int>{1})) << job.errors;
    EXPECT_LT(job.errors.find(mistake), job.errors.find("npushmem-run: PE 1 (pid")) << job.errors;
}

// The launcher is stopped while the PEs report: what it finds when it goes on is one line.
TEST(Diagnostics, OfAllPesAreOneLine) {
    constexpr int npes = 17;
    JobUnderTest job(failing_job({"-n", std::to_string(npes)}, "on-signal"), with_uid());
    const auto pids = pids_by_pe(job.reports(npes));
    job.signal(SIGSTOP);
    job.wait_until_stopped();
    for (const int pid : pids) ASSERT_EQ(::kill(pid, SIGUSR1), 0);
    EXPECT_EQ(job.reports(npes).size(), std::size_t{npes});
    job.signal(SIGCONT);
    for (const int pid : pids) ASSERT_EQ(::kill(pid, SIGUSR1), 0);
    EXPECT_EQ(job.end(), 1);
    EXPECT_THAT(job.errors(), AllOf(HasSubstr("npushmem PEs 0-16: " + mistake), HasSubstr("17 calls failed")));
    EXPECT_EQ(reported(job.errors()).size(), std::size_t{npes}) << job.errors();
}

TEST(Diagnostics, OutliveTheLauncher) {
    JobUnderTest job(failing_job({"-n", "3"}, "on-signal"), with_uid());
    const auto pids = pids_by_pe(job.reports(3));
    job.signal(SIGSTOP);
    job.wait_until_stopped();
    for (const int pid : pids) ASSERT_EQ(::kill(pid, SIGUSR1), 0);
    EXPECT_EQ(job.reports(3).size(), 3U);
    job.signal(SIGKILL);
    EXPECT_EQ(job.end(), 128 + SIGKILL);
    EXPECT_EQ(reported(job.errors()), (std::multiset<int>{0, 1, 2})) << job.errors();
}

TEST(Diagnostics, GoWhereThePesStandardErrorWasSentTo) {
    JobUnderTest job({"-n", "2", "/bin/sh", "-c", "exec \"$0\" mistaken 2>/dev/null", RUN_TEST_NPUSHMEM}, with_uid());
    EXPECT_EQ(job.end(), 1);
    EXPECT_THAT(job.errors(), AllOf(Not(HasSubstr(mistake)), HasSubstr("2 calls failed")));
}

TEST(Diagnostics, HaveTheTagOfTheirPe) {
    const Ended job = run({"-n", "2", "--tag-output"}, "last-words");
    EXPECT_THAT(job.errors, HasSubstr("[pe 1] npushmem pe 1/2 " + mistake));
}

TEST(Diagnostics, AreNotMovedOutOfALogThatHasMore) {
    const Ended job = run({"-n", "2", "-x", "NPUSHMEM_DEBUG=info"}, "mistaken");
    EXPECT_EQ(job.status, 1);
    EXPECT_THAT(job.errors, AllOf(HasSubstr("npushmem pe 0/2 " + mistake), HasSubstr("npushmem pe 1/2 " + mistake)));
}

// Hosts that are this one, by a remote shell that takes their names for assignments.
const std::vector<std::string> two_hosts{"-n",    "4",   "--hosts", "HOST=a,HOST=b",
                                         "--rsh", "env", "-x",      "NPUSHMEM_BOOTSTRAP_UID_SOCK_IFNAME=lo"};

TEST(FailedCalls, OfOtherHostsFailTheJob) {
    const Ended job = run(two_hosts, "mistaken");
    EXPECT_EQ(job.status, 1);
    EXPECT_THAT(job.errors, AllOf(HasSubstr("npushmem-run: 4 calls failed (1 on each of PEs 0-3)"),
                                  Not(HasSubstr("\x1e")), Not(HasSubstr("exited with status"))));
    EXPECT_EQ(reported(job.errors), (std::multiset<int>{0, 1, 2, 3})) << job.errors;
}

TEST(FailedCalls, OfOtherHostsAreTheProgramsOwnAffairWhereItAsked) {
    const Ended job = run(two_hosts, "asked", 4);
    EXPECT_EQ(job.status, 0) << job.errors;
    EXPECT_EQ(reported(job.errors).size(), 8U) << job.errors;
}

TEST(Diagnostics, OfAPeOnAnotherHostComeBeforeItsEnd) {
    const Ended job = run(two_hosts, "last-words");
    EXPECT_EQ(job.status, 128 + SIGKILL);
    EXPECT_EQ(reported(job.errors), (std::multiset<int>{1})) << job.errors;
    EXPECT_LT(job.errors.find(mistake), job.errors.find("npushmem-run: ")) << job.errors;
    EXPECT_THAT(job.errors, Not(HasSubstr("\x1e")));
}

// A remote shell that drops standard error: the job fails nevertheless.
TEST(FailedCalls, OfAHostWhoseReportsAreLostFailTheJob) {
    const auto script = std::filesystem::path(::testing::TempDir()) / ("silent_rsh_" + std::to_string(::getpid()));
    std::ofstream(script) << "shift\nexec \"$@\" 2>/dev/null\n";
    auto options = two_hosts;
    options[5] = "sh " + script.string();
    const Ended job = run(options, "mistaken");
    std::filesystem::remove(script);
    EXPECT_EQ(job.status, exit_calls_failed) << job.errors;
    EXPECT_THAT(job.errors, HasSubstr("exited with status 123"));
}

}  // namespace
}  // namespace npushmem::run
