// SPDX-License-Identifier: BSD-3-Clause
// Jobs of real npushmem programs, which start through the uid plugin: their start, and their cleanup after one of them
// dies.
#include <gmock/gmock.h>

#include <csignal>
#include <filesystem>
#include <fstream>
#include <set>

#include "core/tools/run/exit_record.hpp"
#include "tests/integration/run/job_under_test.hpp"

namespace npushmem::run {
namespace {

using ::testing::AllOf;
using ::testing::HasSubstr;
using ::testing::IsEmpty;
using ::testing::Not;

JobSettings by_uid() {
    JobSettings settings;
    settings.with_bootstrap = true;
    return settings;
}

std::vector<std::string> npushmem_job(std::vector<std::string> options, const std::string& part) {
    options.emplace_back(RUN_TEST_NPUSHMEM);
    options.push_back(part);
    return options;
}

int times(std::string_view word, std::string_view text) {
    int count = 0;
    for (auto at = text.find(word); at != std::string_view::npos; at = text.find(word, at + word.size())) ++count;
    return count;
}

const std::vector<std::string> three_hosts{"-n",    "3",      "--hosts", "a,b,c",
                                           "--rsh", "env -u", "-x",      "NPUSHMEM_BOOTSTRAP_UID_SOCK_IFNAME=lo"};

// Names that a symmetric-memory library might leave in the file system.
std::set<std::string> named_memory() {
    std::set<std::string> out;
    for (const std::filesystem::path& folder :
         {std::filesystem::path("/dev/shm"), std::filesystem::temp_directory_path()})
        for (const auto& entry : std::filesystem::directory_iterator(folder))
            if (entry.path().filename().string().find("npushmem") != std::string::npos) out.insert(entry.path());
    return out;
}

class Npushmem : public ::testing::Test {
protected:
    void TearDown() override {
        // Other programs of this machine have their own, which come and go.
        EXPECT_TRUE(eventually([this] { return leftovers().empty(); }))
            << "left behind: " << ::testing::PrintToString(leftovers());
    }
    [[nodiscard]] std::set<std::string> leftovers() const {
        std::set<std::string> out = named_memory();
        for (const auto& name : before_) out.erase(name);
        return out;
    }

    std::set<std::string> before_ = named_memory();
};

// The launcher reads it too: without it there would be no id for these PEs, which meet by the uid plugin.
TEST_F(Npushmem, ReadsTheConfigurationFile) {
    const std::string path = ::testing::TempDir() + "npushmem-job.conf";
    std::ofstream(path)
        << "NPUSHMEM_INFO=1\nNPUSHMEM_SYMMETRIC_SIZE=8M\nNPUSHMEM_SYMETRIC_SIZE=9M\nNPUSHMEM_BOOTSTRAP=uid\n";
    JobSettings settings = by_uid();
    settings.environment = {"NPUSHMEM_CONFIG_FILE=" + path};
    JobUnderTest job(npushmem_job({"-n", "2"}, "whole"), settings);
    EXPECT_EQ(job.reports(2).size(), 2U);
    EXPECT_EQ(job.end(), 0) << job.errors();
    EXPECT_THAT(job.errors(), AllOf(HasSubstr(path + ":3: unknown variable NPUSHMEM_SYMETRIC_SIZE"),
                                    HasSubstr("did you mean NPUSHMEM_SYMMETRIC_SIZE?"), HasSubstr("8 MiB")));
    std::ofstream(path) << "\nNPUSHMEM_TIMEOUT\n";
    JobUnderTest wrong(npushmem_job({"-n", "2"}, "whole"), settings);
    EXPECT_NE(wrong.end(), 0);
    EXPECT_THAT(wrong.errors(), HasSubstr("npushmem-run: " + path + ":2: 'NPUSHMEM_TIMEOUT': expected"));
    std::filesystem::remove(path);
}

// Far more PEs than cores, each with the default heap of 1 GiB: they start, meet and end.
TEST_F(Npushmem, HundredsOfPes) {
    JobUnderTest job(npushmem_job({"-n", "256"}, "whole"), by_uid());
    EXPECT_EQ(job.reports(256).size(), 256U);
    EXPECT_EQ(job.end(), 0) << job.errors();
}

TEST_F(Npushmem, AThousandPes) {
    JobUnderTest job(npushmem_job({"-n", "1024"}, "whole"), by_uid());
    EXPECT_EQ(job.reports(1024).size(), 1024U);
    EXPECT_EQ(job.end(), 0) << job.errors();
}

TEST_F(Npushmem, CountsWhatItIsToldToCount) {
    JobUnderTest job(npushmem_job({"-n", "3", "-x", "NPUSHMEM_STATS=1", "-x", "NPUSHMEM_STATS_EVERY=10"}, "counted"),
                     by_uid());
    std::multiset<std::string> words;
    for (const auto& report : job.reports(16)) words.insert(report.word);
    for (const char* word : {"codes-0-0", "barriers-100", "timed-10", "in-team-30-3", "times-fit"})
        EXPECT_EQ(words.count(word), 3U) << word << " of " << ::testing::PrintToString(words);
    EXPECT_EQ(words.count("last-3"), 1U) << ::testing::PrintToString(words);
    EXPECT_EQ(job.end(), 0) << job.errors();
    EXPECT_THAT(job.errors(), HasSubstr("npushmem statistics of 3 PEs; one barrier in 10 was timed"));
}

TEST_F(Npushmem, CountsNoBarriersUnasked) {
    JobUnderTest job(npushmem_job({"-n", "2"}, "counted"), by_uid());
    std::multiset<std::string> words;
    for (const auto& report : job.reports(11)) words.insert(report.word);
    EXPECT_EQ(words.count("barriers-0"), 2U);
    EXPECT_EQ(words.count("in-team-0-0"), 2U);
    EXPECT_EQ(words.count("last-0"), 1U);
    EXPECT_EQ(words.count("codes-0-0"), 2U);
    EXPECT_EQ(job.end(), 0);
    EXPECT_THAT(job.errors(), IsEmpty());
}

// PE 0 reads the counts of PEs that have finalized; the decorator holds each read for longer than PE 0 waits before it
// looks for dead PEs.
TEST_F(Npushmem, PrintsStatisticsOfPesThatHaveFinalizedHoweverLongReadingThemTakes) {
    JobSettings settings = by_uid();
    settings.environment = {"NPUSHMEM_STATS=1", "NPUSHMEM_TRANSPORTS=fault(nomap(p2p))", "NPUSHMEM_FAULT_SEED=1",
                            "NPUSHMEM_FAULT_DELAY=3000"};
    JobUnderTest job(npushmem_job({"-n", "2"}, "whole"), settings);
    EXPECT_EQ(job.reports(2).size(), 2U);
    EXPECT_EQ(job.end(), 0) << job.errors();
    EXPECT_THAT(job.errors(), AllOf(HasSubstr("npushmem statistics of 2 PEs"), Not(HasSubstr("has died"))));
}

// The program does not check the status of its start; the library has reported the failure to the launcher.
TEST_F(Npushmem, AFailedStartIsTheJobsFailure) {
    for (const char* variable :
         {"NPUSHMEM_ON_ERROR=panic", "NPUSHMEM_SYMMETRIC_SIZE=12Q", "NPUSHMEM_TRANSPORTS=self,p2pp",
          "NPUSHMEM_BARRIER_ALGO=nosuch", "NPUSHMEM_DEBUG_FILE=/nonexistent/log"}) {
        JobUnderTest job(npushmem_job({"-n", "2", "-x", variable}, "careless"), by_uid());
        EXPECT_EQ(job.end(), 1) << variable;
    }
    JobSettings reporting = by_uid();
    JobUnderTest job(
        npushmem_job({"-n", "2", "-x", "NPUSHMEM_ON_ERROR=report", "-x", "NPUSHMEM_TRANSPORTS=self,p2pp"}, "careless"),
        reporting);
    EXPECT_EQ(job.end(), 0) << "as it was asked for";
}

// The cause is reported once, and so is that nothing else can be called.
TEST_F(Npushmem, AFailedStartIsReportedOnce) {
    JobUnderTest job(
        npushmem_job({"-n", "1", "-x", "NPUSHMEM_ON_ERROR=report", "-x", "NPUSHMEM_TRANSPORTS=self,p2pp"}, "careless"),
        by_uid());
    EXPECT_EQ(job.end(), 0);
    EXPECT_EQ(times("error api: ", job.errors()), 2) << job.errors();
    EXPECT_EQ(times("start-up failed", job.errors()), 1) << job.errors();
    EXPECT_EQ(times("because its start failed", job.errors()), 1) << job.errors();
}

// A program may have closed the launcher's pipe; what it opened next is not ours to write to.
TEST_F(Npushmem, AFileInThePlaceOfTheLaunchersPipeIsNotWrittenTo) {
    JobUnderTest job(npushmem_job({"-n", "2", "-x", "NPUSHMEM_TRANSPORTS=self,p2pp"}, "reused"), by_uid());
    for (const auto& report : job.reports(2)) EXPECT_EQ(report.word, "bytes-0");
    EXPECT_EQ(job.end(), 0);
}

TEST_F(Npushmem, AJobStartsAndEnds) {
    JobUnderTest job(npushmem_job({"-n", "8"}, "whole"), by_uid());
    for (const auto& report : job.reports(8)) EXPECT_EQ(report.word, "n_pes-8");
    EXPECT_EQ(job.end(), 0);
    EXPECT_THAT(job.errors(), IsEmpty());
}

TEST_F(Npushmem, OnePe) {
    JobUnderTest job(npushmem_job({}, "whole"), by_uid());
    EXPECT_EQ(job.reports(1)[0].word, "n_pes-1");
    EXPECT_EQ(job.end(), 0);
}

TEST_F(Npushmem, JobsSideBySideDoNotMeet) {
    JobUnderTest first(npushmem_job({"-n", "3"}, "whole"), by_uid());
    JobUnderTest second(npushmem_job({"-n", "2"}, "whole"), by_uid());
    for (const auto& report : first.reports(3)) EXPECT_EQ(report.word, "n_pes-3");
    for (const auto& report : second.reports(2)) EXPECT_EQ(report.word, "n_pes-2");
    EXPECT_EQ(second.end_alone(), 0);
    EXPECT_EQ(first.end(), 0);
}

TEST_F(Npushmem, KillOfAPeThatOthersWaitForEndsTheJob) {
    JobUnderTest job(npushmem_job({"-n", "4"}, "waiting"), by_uid());
    const auto pids = pids_by_pe(job.reports(4));
    ASSERT_EQ(::kill(pids[0], SIGKILL), 0);
    EXPECT_EQ(job.end(), 128 + SIGKILL);
    EXPECT_THAT(job.errors(), HasSubstr("PE 0 (pid " + std::to_string(pids[0])));
}

TEST_F(Npushmem, KillOfAPeThatWaitsEndsTheJob) {
    JobUnderTest job(npushmem_job({"-n", "4"}, "waiting"), by_uid());
    const auto pids = pids_by_pe(job.reports(4));
    ASSERT_EQ(::kill(pids[3], SIGABRT), 0);
    EXPECT_EQ(job.end(), 128 + SIGABRT);
    EXPECT_THAT(job.errors(), HasSubstr("PE 3 (pid " + std::to_string(pids[3])));
}

// The others see the end of its connection, and report that they cannot go on, before it can be reaped.
TEST_F(Npushmem, APeThatIsKilledInInitIsNamedAlsoWhenOthersReportItFirst) {
    for (const char* part : {"lingering", "lingering-6"}) {
        JobUnderTest job(npushmem_job({"-n", "4"}, part), by_uid());
        const auto pids = pids_by_pe(job.reports(4));
        for (const int pe : {1, 2, 3})
            ASSERT_TRUE(eventually([&] { return has_joined(pids[static_cast<std::size_t>(pe)]); }));
        ASSERT_EQ(::kill(pids[1], SIGKILL), 0);
        EXPECT_EQ(job.end(), 128 + SIGKILL) << job.errors();
        EXPECT_THAT(job.errors(), HasSubstr("PE 1 (pid " + std::to_string(pids[1])));
        EXPECT_THAT(job.errors(), Not(HasSubstr("as it has reported above")));
    }
}

// Hosts that are this one, with one PE each. PE 1 cannot be reaped when PE 2 and its host have ended already.
TEST_F(Npushmem, APeThatIsKilledInInitIsNamedAlsoWhenAnotherHostReportsItFirst) {
    for (const char* part : {"lingering", "lingering-6", "lingering", "lingering-6", "lingering", "lingering-6"}) {
        JobUnderTest job(npushmem_job(three_hosts, part), by_uid());
        const auto pids = pids_by_pe(job.reports(3));
        for (const int pe : {1, 2})
            ASSERT_TRUE(eventually([&] { return has_joined(pids[static_cast<std::size_t>(pe)]); }));
        ASSERT_EQ(::kill(pids[1], SIGKILL), 0);
        EXPECT_EQ(job.end(), 128 + SIGKILL) << part;
        EXPECT_THAT(job.errors(), HasSubstr("PE 1 (pid " + std::to_string(pids[1])));
        EXPECT_THAT(job.errors(), AllOf(Not(HasSubstr("as it has reported above")), Not(HasSubstr("status 6"))));
    }
}

TEST_F(Npushmem, APeThatIsKilledInABarrierIsNamedAlsoWhenAnotherHostReportsItFirst) {
    for (int run = 0; run < 5; ++run) {
        JobUnderTest job(npushmem_job(three_hosts, "waiting"), by_uid());
        const auto pids = pids_by_pe(job.reports(3));
        ASSERT_EQ(::kill(pids[1], SIGKILL), 0);
        EXPECT_EQ(job.end(), 128 + SIGKILL) << job.errors();
        EXPECT_THAT(job.errors(), HasSubstr("PE 1 (pid " + std::to_string(pids[1])));
        EXPECT_THAT(job.errors(), Not(HasSubstr("as it has reported above")));
    }
}

// Every PE of the job reports the same failure, and no PE is its cause.
TEST_F(Npushmem, AFailedStartOnSeveralHostsNamesThePeThatReportsIt) {
    auto options = three_hosts;
    options.insert(options.end(), {"-x", "NPUSHMEM_TRANSPORTS=self,p2pp"});
    JobUnderTest job(npushmem_job(options, "careless"), by_uid());
    EXPECT_EQ(job.end(), 1);
    EXPECT_EQ(times("as it has reported above", job.errors()), 1) << job.errors();
}

TEST_F(Npushmem, KillOfTheLauncherLeavesNothing) {
    JobUnderTest job(npushmem_job({"-n", "4"}, "waiting"), by_uid());
    EXPECT_EQ(job.reports(4).size(), 4U);
    job.signal(SIGKILL);
    EXPECT_EQ(job.end(), 128 + SIGKILL);
}

TEST_F(Npushmem, ARendezvousThatCannotBeOpenedStartsNothing) {
    JobSettings settings = by_uid();
    settings.environment = {"NPUSHMEM_BOOTSTRAP_UID_SOCK_IFNAME=nosuch0"};
    JobUnderTest job(npushmem_job({"-n", "2"}, "whole"), settings);
    EXPECT_EQ(job.end(), exit_launcher_failed);
    EXPECT_THAT(job.errors(), AllOf(HasSubstr("the job's rendezvous cannot be opened"), HasSubstr("nosuch0")));
}

TEST_F(Npushmem, FailureBeforeInitEndsThoseWhoWaitInInit) {
    JobUnderTest job(npushmem_job({"-n", "3"}, "early"), by_uid());
    EXPECT_EQ(job.end(), 3);
    EXPECT_THAT(job.errors(), HasSubstr("exited with status 3"));
}

// Long before the time-out of the start, which is a minute.
TEST_F(Npushmem, APeThatExitsWithZeroBeforeInitIsNotWaitedFor) {
    JobUnderTest job(npushmem_job({"-n", "4"}, "absent"), by_uid());
    EXPECT_EQ(job.end(), 1);
    EXPECT_THAT(job.errors(), AllOf(HasSubstr("PE 1 (pid "), HasSubstr("exited with status 0 without calling "),
                                    HasSubstr("start only as many PEs as do")));
}

TEST_F(Npushmem, AHostWhosePesExitWithZeroBeforeInitIsNotWaitedFor) {
    JobUnderTest job(npushmem_job({"-n", "2", "--hosts", "a,b", "--rsh", "env -u"}, "absent"), by_uid());
    EXPECT_EQ(job.end(), 1);
    EXPECT_THAT(job.errors(), HasSubstr("PE 1 (host b) exited with status 0 without calling "));
}

// PE 0, on the same host, waits in init meanwhile.
TEST_F(Npushmem, APeOfAHostThatExitsWithZeroBeforeInitIsNotWaitedFor) {
    JobUnderTest job(npushmem_job({"-n", "4", "--hosts", "a,b", "--rsh", "env -u"}, "absent"), by_uid());
    EXPECT_EQ(job.end(), 1);
    EXPECT_THAT(job.errors(), AllOf(HasSubstr("PE 1 (pid "), HasSubstr("exited with status 0 without calling ")));
}

TEST_F(Npushmem, AJobThatNeverCallsInitWorks) {
    JobUnderTest job(helper_job({"-n", "4"}, {"0:exit=0", "report=ran"}), by_uid());
    EXPECT_EQ(job.reports(3).size(), 3U);
    EXPECT_EQ(job.end(), 0);
    EXPECT_THAT(job.errors(), IsEmpty());
}

TEST_F(Npushmem, GlobalExitGivesItsStatus) {
    JobUnderTest job(npushmem_job({"-n", "3"}, "global-exit"), by_uid());
    EXPECT_EQ(job.end(), 5);
    EXPECT_THAT(job.errors(), HasSubstr("PE 1 ended the job by npushmem_global_exit(5)"));
}

TEST_F(Npushmem, GlobalExitOnOneOfSeveralHostsGivesItsStatus) {
    JobUnderTest job(npushmem_job(three_hosts, "global-exit"), by_uid());
    EXPECT_EQ(job.end(), 5);
    EXPECT_EQ(times("PE 1 ended the job by npushmem_global_exit(5)", job.errors()), 1) << job.errors();
    EXPECT_THAT(job.errors(), Not(HasSubstr("cannot go on")));
}

// Status 0 is no failure to the launcher; that the PE is gone is for the library to find out, which then fails the job.
TEST_F(Npushmem, NobodyWaitsForEverForAPeThatLeftWithoutFinalize) {
    JobUnderTest job(npushmem_job({"-n", "3"}, "forgetful"), by_uid());
    EXPECT_EQ(job.end(), 1);
    EXPECT_THAT(job.errors(), HasSubstr("cannot go on"));
}

}  // namespace
}  // namespace npushmem::run
