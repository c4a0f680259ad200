// SPDX-License-Identifier: BSD-3-Clause
// How a job ends: statuses, messages, and that nothing outlives it.
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

TEST(Ending, AllZeroIsZeroAndSilent) {
    JobUnderTest job(helper_job({"-n", "4"}, {"report=ran"}));
    EXPECT_EQ(job.reports(4).size(), 4U);
    EXPECT_EQ(job.end(), 0);
    EXPECT_THAT(job.errors(), IsEmpty());
}

TEST(Ending, APeThatExitsWithZeroLeavesTheOthersRunning) {
    JobUnderTest job(helper_job({"-n", "2"}, {"expect=10", "report=ready", "0:exit=0", "await=10"}));
    const auto pids = pids_by_pe(job.reports(2));
    ASSERT_TRUE(wait_for_state(pids[0], '-'));
    job.signal(SIGUSR1);
    EXPECT_EQ(job.reports(1)[0].word, "signal-10");
    EXPECT_EQ(job.end(), 0);
}

TEST(Ending, StatusOfAFailureIsPassedOnAndNamed) {
    JobUnderTest job(helper_job({"-n", "3"}, {"1:expect=10", "report=ready", "1:await=10", "1:exit=7", "pause"}));
    const auto pids = pids_by_pe(job.reports(3));
    ASSERT_EQ(::kill(pids[1], SIGUSR1), 0);
    EXPECT_EQ(job.end(), 7);
    EXPECT_THAT(job.errors(),
                AllOf(HasSubstr("PE 1 (pid " + std::to_string(pids[1])), HasSubstr("exited with status 7")));
}

TEST(Ending, SignalOfAFailureIsPassedOnAndNamed) {
    JobUnderTest job(helper_job({"-n", "2"}, {"1:die=6", "pause"}));
    EXPECT_EQ(job.end(), 128 + SIGABRT);
    EXPECT_THAT(job.errors(), AllOf(HasSubstr("PE 1 (pid "), HasSubstr("killed by signal 6 (SIGABRT")));
}

TEST(Ending, KillOfAPeEndsTheJobWithOneMessage) {
    JobUnderTest job(helper_job({"-n", "3"}, {"report=ready", "pause"}));
    const auto pids = pids_by_pe(job.reports(3));
    ASSERT_EQ(::kill(pids[2], SIGKILL), 0);
    EXPECT_EQ(job.end(), 128 + SIGKILL);
    EXPECT_THAT(job.errors(), AllOf(HasSubstr("PE 2 (pid " + std::to_string(pids[2])), HasSubstr("SIGKILL"),
                                    Not(HasSubstr("PE 0")), Not(HasSubstr("PE 1"))));
}

TEST(Ending, AFailureOnOneHostIsReportedByThatHostOnly) {
    JobUnderTest job(helper_job({"-n", "4", "--hosts", "a,b", "--rsh", "env -u"}, {"report=ready", "pause"}));
    const auto pids = pids_by_pe(job.reports(4));
    ASSERT_EQ(::kill(pids[1], SIGKILL), 0);
    EXPECT_EQ(job.end(), 128 + SIGKILL);
    const std::string errors = job.errors();
    const auto first = errors.find("killed by");
    ASSERT_NE(first, std::string::npos) << errors;
    EXPECT_EQ(errors.find("killed by", first + 1), std::string::npos) << errors;
    EXPECT_THAT(errors, HasSubstr("PE 1 (pid " + std::to_string(pids[1])));
}

TEST(Ending, PesThatIgnoreTermAreKilled) {
    JobUnderTest job(helper_job({"-n", "3"}, {"ignore=15", "report=ready", "2:await=10", "pause"}));
    const auto pids = pids_by_pe(job.reports(3));
    ASSERT_EQ(::kill(pids[2], SIGABRT), 0);
    EXPECT_EQ(job.end(), 128 + SIGABRT);
}

TEST(Ending, StoppedPesAreEndedAsWell) {
    JobUnderTest job(helper_job({"-n", "2"}, {"report=ready", "pause"}));
    const auto pids = pids_by_pe(job.reports(2));
    ASSERT_EQ(::kill(pids[0], SIGSTOP), 0);
    ASSERT_TRUE(wait_for_state(pids[0], 'T'));
    ASSERT_EQ(::kill(pids[1], SIGKILL), 0);
    EXPECT_EQ(job.end(), 128 + SIGKILL);
}

TEST(Ending, GrandchildrenOfPesThatHaveEndedAreKilledAtTheEnd) {
    JobUnderTest job(helper_job({"-n", "2"}, {"child=group", "session=session"}));
    EXPECT_EQ(job.reports(4).size(), 4U);
    EXPECT_EQ(job.end(), 0);
}

TEST(Ending, KillOfTheLauncherLeavesNothing) {
    JobUnderTest job(helper_job({"-n", "3"}, {"child=group", "session=session", "report=ready", "pause"}));
    EXPECT_EQ(job.reports(9).size(), 9U);
    job.signal(SIGKILL);
    EXPECT_EQ(job.end(), 128 + SIGKILL);
}

TEST(Ending, KillOfTheLaunchersProcessGroupLeavesNothing) {
    JobSettings settings;
    settings.own_group = true;
    JobUnderTest job(helper_job({"-n", "2", "--prefix"}, {"child=group", "session=session", "report=ready", "pause"}),
                     settings);
    EXPECT_EQ(job.reports(6).size(), 6U);
    ASSERT_EQ(::kill(-job.launcher(), SIGKILL), 0);
    EXPECT_EQ(job.end(), 128 + SIGKILL);
}

TEST(Ending, KillOfTheLauncherWhileItStartsPesLeavesNothing) {
    JobUnderTest job(helper_job({"-n", "300"}, {"report=ready", "pause"}));
    EXPECT_EQ(job.reports(5).size(), 5U);
    job.signal(SIGKILL);
    EXPECT_EQ(job.end(), 128 + SIGKILL);
}

TEST(Ending, KillOfTheSupervisorEndsTheJobWithAMessage) {
    JobUnderTest job(helper_job({"-n", "2"}, {"child=group", "session=session", "report=ready", "pause"}));
    EXPECT_EQ(job.reports(6).size(), 6U);
    const int supervisor = job.supervisor();
    ASSERT_EQ(::kill(supervisor, SIGKILL), 0);
    EXPECT_EQ(job.end(), exit_launcher_failed);
    EXPECT_THAT(job.errors(), HasSubstr("supervisor process (pid " + std::to_string(supervisor)));
}

// The launcher reads its end of the channel as still open, as while the supervisor is killed between vfork and execve.
TEST(Ending, KillOfTheSupervisorIsNoticedWhileItsSocketIsHeldElsewhere) {
    JobUnderTest job(helper_job({"-n", "2"}, {"report=ready", "pause"}));
    EXPECT_EQ(job.reports(2).size(), 2U);
    const int supervisor = job.supervisor();
    const std::vector<FileDescriptor> held = sockets_of(supervisor);
    if (held.empty()) GTEST_SKIP() << "this user may not take the descriptors of another process";
    ASSERT_EQ(::kill(supervisor, SIGKILL), 0);
    EXPECT_EQ(job.end(), exit_launcher_failed);
    EXPECT_THAT(job.errors(),
                HasSubstr("supervisor process (pid " + std::to_string(supervisor) + ") was killed by signal 9"));
}

TEST(Ending, KillOfTheSupervisorAtAnyStageOfTheStartIsAFailure) {
    for (const int started : {1, 2, 3, 5, 8, 13, 21, 34, 55, 60}) {
        JobUnderTest job(helper_job({"-n", "60"}, {"report=ready", "pause"}));
        EXPECT_EQ(job.reports(started).size(), static_cast<std::size_t>(started));
        ASSERT_EQ(::kill(job.supervisor(), SIGKILL), 0);
        EXPECT_EQ(job.end(), exit_launcher_failed) << started;
        EXPECT_THAT(job.errors(), HasSubstr("supervisor process (pid ")) << started;
    }
}

// Whoever starts the launcher may ignore its children's ends, which it inherits.
TEST(Ending, AnIgnoredSignalOfChildrenChangesNothing) {
    JobSettings settings;
    settings.children_ignored = true;
    JobUnderTest good(helper_job({"-n", "2"}, {"report=ran"}), settings);
    EXPECT_EQ(good.end(), 0) << good.errors();
    JobUnderTest bad(helper_job({"-n", "2"}, {"1:exit=7", "pause"}), settings);
    EXPECT_EQ(bad.end(), 7);
}

TEST(Ending, TimeLimit) {
    JobUnderTest job(helper_job({"-n", "2", "--timeout", "0.05"}, {"ignore=15", "pause"}));
    EXPECT_EQ(job.end(), exit_timeout);
    EXPECT_THAT(job.errors(), HasSubstr("time limit of 0.05 s (--timeout)"));
}

TEST(Ending, FailureWhileOthersAreStillBeingStarted) {
    JobUnderTest job(helper_job({"-n", "200"}, {"0:exit=9", "pause"}));
    EXPECT_EQ(job.end(), 9);
    EXPECT_THAT(job.errors(), HasSubstr("PE 0 (pid"));
}

TEST(Ending, ProgramsThatCannotRun) {
    const std::filesystem::path folder =
        std::filesystem::temp_directory_path() / ("run_test_" + std::to_string(::getpid()));
    std::filesystem::create_directory(folder);
    std::ofstream(folder / "no_interpreter") << "#!/no/such/interpreter\n";
    std::ofstream(folder / "no_program") << "\x01\x02 text\n";
    std::filesystem::permissions(folder / "no_interpreter", std::filesystem::perms::owner_all);
    std::filesystem::permissions(folder / "no_program", std::filesystem::perms::owner_all);
    JobUnderTest interpreter({"-n", "2", (folder / "no_interpreter").string()});
    EXPECT_EQ(interpreter.end(), exit_not_found);
    EXPECT_THAT(interpreter.errors(), HasSubstr("the interpreter that it names does not exist"));
    JobUnderTest text({"-n", "2", (folder / "no_program").string()});
    EXPECT_EQ(text.end(), exit_not_executable);
    EXPECT_THAT(text.errors(), AllOf(HasSubstr("PE 0 of 2 cannot be started"), HasSubstr("#! line")));
    JobUnderTest missing({"-n", "2", (folder / "missing").string()});
    EXPECT_EQ(missing.end(), exit_not_found);
    std::filesystem::remove_all(folder);
}

TEST(Ending, TooFewDescriptorsEndTheJobWithTheReason) {
    JobSettings settings;
    settings.max_files = 64;
    for (const char* output : {"--tag-output", "--bind=none"}) {
        JobUnderTest job(helper_job({"-n", "100", output}, {"pause"}), settings);
        EXPECT_EQ(job.end(), exit_launcher_failed) << output;
        EXPECT_THAT(job.errors(), HasSubstr("ulimit -n")) << output;
    }
}

TEST(Ending, ManyPes) {
    JobUnderTest job(helper_job({"-n", "1024"}, {"report=ran"}));
    std::set<int> seen;
    for (const auto& report : job.reports(1024)) seen.insert(report.pe);
    EXPECT_EQ(seen.size(), 1024U);
    EXPECT_EQ(job.end(), 0);
}

TEST(Ending, ManyPesWithTaggedOutput) {
    JobUnderTest job(helper_job({"-n", "256", "-t"}, {"print=here"}));
    EXPECT_EQ(job.end(), 0);
    const std::string output = job.output();
    for (int pe = 0; pe < 256; ++pe) EXPECT_THAT(output, HasSubstr("[pe " + std::to_string(pe) + "] here\n"));
}

}  // namespace
}  // namespace npushmem::run
