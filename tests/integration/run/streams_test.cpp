// SPDX-License-Identifier: BSD-3-Clause
// Standard input, output and error, the environment, and what else a PE inherits.
#include <fcntl.h>
#include <gmock/gmock.h>
#include <sched.h>
#include <unistd.h>

#include <array>
#include <csignal>
#include <map>
#include <sstream>

#include "tests/integration/run/job_under_test.hpp"

namespace npushmem::run {
namespace {

using ::testing::AllOf;
using ::testing::HasSubstr;
using ::testing::IsEmpty;
using ::testing::Not;

std::array<FileDescriptor, 2> make_pipe() {
    std::array<int, 2> ends{};
    EXPECT_EQ(::pipe2(ends.data(), O_CLOEXEC), 0);
    return {FileDescriptor(ends[0]), FileDescriptor(ends[1])};
}

std::map<int, std::string> words_by_pe(const std::vector<Report>& reports) {
    std::map<int, std::string> out;
    for (const auto& report : reports) out[report.pe] += report.word;
    return out;
}

TEST(Streams, InputGoesToPeZeroOnly) {
    auto [read, write] = make_pipe();
    JobSettings settings;
    settings.input = read.get();
    JobUnderTest job(helper_job({"-n", "3"}, {"stdin"}), settings);
    ASSERT_EQ(::write(write.get(), "hello", 5), 5);
    write.reset();
    const auto words = words_by_pe(job.reports(3));
    EXPECT_EQ(words.at(0), "stdin[hello]");
    EXPECT_EQ(words.at(1), "stdin[]");
    EXPECT_EQ(words.at(2), "stdin[]");
    EXPECT_EQ(job.end(), 0);
}

TEST(Streams, OutputIsInheritedWithoutTags) {
    JobUnderTest job(helper_job({"-n", "1"}, {"print=out", "error=err"}));
    EXPECT_EQ(job.end(), 0);
    EXPECT_EQ(job.output(), "out\n");
    EXPECT_EQ(job.errors(), "err\n");
}

TEST(Streams, TagsNameThePeOnBothStreams) {
    JobUnderTest job(helper_job({"-n", "2", "--tag-output"}, {"1:print=out", "0:error=err", "1:partial=no newline"}));
    EXPECT_EQ(job.end(), 0);
    EXPECT_EQ(job.output(), "[pe 1] out\n[pe 1] no newline\n");
    EXPECT_EQ(job.errors(), "[pe 0] err\n");
}

TEST(Streams, TaggedLinesAreWholeAndInOrder) {
    constexpr int npes = 4;
    constexpr int count = 2000;
    JobUnderTest job(helper_job({"-n", "4", "-t"}, {"lines=" + std::to_string(count)}));
    EXPECT_EQ(job.end(), 0);
    std::istringstream output(job.output());
    std::map<int, int> next;
    for (std::string line; std::getline(output, line);) {
        int tag = -1, number = -1, pe = -1;
        ASSERT_EQ(std::sscanf(line.c_str(), "[pe %d] line %d of %d", &tag, &number, &pe), 3) << line;
        EXPECT_EQ(tag, pe);
        EXPECT_EQ(number, next[tag]++);
    }
    for (int pe = 0; pe < npes; ++pe) EXPECT_EQ(next[pe], count);
}

// More than a pipe and the launcher's buffer hold, to a reader that reads nothing until the signal has been handled.
TEST(Streams, ASlowReaderDoesNotKeepTheLauncherFromItsWork) {
    auto [read, write] = make_pipe();
    JobSettings settings;
    settings.output = write.get();
    JobUnderTest job(helper_job({"-n", "2", "-t"}, {"1:lines=200000", "report=ready", "pause"}), settings);
    write.reset();
    EXPECT_EQ(job.reports(1)[0].pe, 0);
    std::array<char, 65536> bytes{};
    std::size_t lines = 0;
    ASSERT_GT(::read(read.get(), bytes.data(), 1), 0);  // the launcher has begun to write
    job.signal(SIGUSR2);                                // ends both by its default action
    for (ssize_t size; (size = ::read(read.get(), bytes.data(), bytes.size())) > 0;)
        lines += static_cast<std::size_t>(std::count(bytes.begin(), bytes.begin() + size, '\n'));
    EXPECT_GT(lines, 0U);
    EXPECT_EQ(job.end(), 128 + SIGUSR2);
}

TEST(Streams, AReaderThatLeavesEndsTheWriters) {
    const std::vector<std::string> tagged{"-n", "2", "-t"};
    const std::vector<std::string> on_hosts{"-n", "2", "--hosts", "a,b", "--rsh", "env -u"};
    for (const auto& options : {tagged, on_hosts}) {
        auto [read, write] = make_pipe();
        JobSettings settings;
        settings.output = write.get();
        JobUnderTest job(helper_job(options, {"lines=100000000"}), settings);
        write.reset();
        char byte = 0;
        ASSERT_EQ(::read(read.get(), &byte, 1), 1);
        read.reset();
        EXPECT_EQ(job.end(), 128 + SIGPIPE);
    }
}

TEST(Environment, EveryPeKnowsItsPlace) {
    JobUnderTest job(helper_job({"-n", "3", "--nodes", "2", "-x", "MINE=a b", "-v"},
                                {"env=NPUSHMEM_PE", "env=NPUSHMEM_NPES", "env=NPUSHMEM_EMULATED_HOST", "env=MINE"}));
    const auto words = words_by_pe(job.reports(12));
    EXPECT_EQ(words.at(0), "NPUSHMEM_PE=0NPUSHMEM_NPES=3NPUSHMEM_EMULATED_HOST=0MINE=a b");
    EXPECT_EQ(words.at(1), "NPUSHMEM_PE=1NPUSHMEM_NPES=3NPUSHMEM_EMULATED_HOST=0MINE=a b");
    EXPECT_EQ(words.at(2), "NPUSHMEM_PE=2NPUSHMEM_NPES=3NPUSHMEM_EMULATED_HOST=1MINE=a b");
    EXPECT_EQ(job.end(), 0);
    EXPECT_THAT(job.errors(), AllOf(HasSubstr("PE 2 started: pid"), HasSubstr("emulated host 1")));
}

TEST(Environment, AHostSaysOfHowManyPesItsAre) {
    JobUnderTest job(helper_job({"-n", "6", "-v", "--hosts", "a,b", "--rsh", "env -u"}, {"env=NPUSHMEM_NPES"}));
    for (const auto& report : job.reports(6)) EXPECT_EQ(report.word, "NPUSHMEM_NPES=6");
    EXPECT_EQ(job.end(), 0);
    EXPECT_THAT(job.errors(), AllOf(HasSubstr(", 3 of 6 PEs, took "), HasSubstr("the job of 6 PEs took "),
                                    Not(HasSubstr("the job of 3 PEs")), Not(HasSubstr("the job of 2 PEs"))));
}

TEST(Environment, ChoiceOfTheUserStays) {
    JobSettings settings;
    settings.environment = {"NPUSHMEM_BOOTSTRAP=pmi", "NPUSHMEM_BOOTSTRAP_UID_SOCK_IFNAME=eth7"};
    JobUnderTest job(helper_job({"-n", "1", "-x", "NPUSHMEM_INFO=1"},
                                {"env=NPUSHMEM_BOOTSTRAP", "env=NPUSHMEM_BOOTSTRAP_UID_SOCK_IFNAME",
                                 "env=NPUSHMEM_INFO", "env=NPUSHMEM_EMULATED_HOST"}),
                     settings);
    EXPECT_EQ(
        words_by_pe(job.reports(4)).at(0),
        "NPUSHMEM_BOOTSTRAP=pmiNPUSHMEM_BOOTSTRAP_UID_SOCK_IFNAME=eth7NPUSHMEM_INFO=1NPUSHMEM_EMULATED_HOST=unset");
    EXPECT_EQ(job.end(), 0);
}

TEST(Inheritance, NoDescriptorAndNoSignalMaskOfTheLauncherReachesPes) {
    for (const char* tag : {"--prefix", "--verbose"}) {
        JobUnderTest job(helper_job({"-n", "2", tag}, {"fds", "mask"}));
        for (const auto& [pe, words] : words_by_pe(job.reports(4))) EXPECT_EQ(words, "fdsmask") << "pe " << pe;
        EXPECT_EQ(job.end(), 0);
    }
}

TEST(Inheritance, BoundPesHaveOneCoreEach) {
    JobUnderTest job(helper_job({"-n", "3", "--bind=hwthread", "-v"}, {"cpus"}));
    for (const auto& report : job.reports(3)) EXPECT_EQ(report.word, "cpus-1");
    EXPECT_EQ(job.end(), 0);
    EXPECT_THAT(job.errors(), HasSubstr("CPUs "));
}

TEST(Inheritance, UnboundPesHaveAllCpus) {
    cpu_set_t set;
    ASSERT_EQ(::sched_getaffinity(0, sizeof set, &set), 0);
    JobUnderTest job(helper_job({"-n", "2", "--bind=none"}, {"cpus"}));
    for (const auto& report : job.reports(2)) EXPECT_EQ(report.word, "cpus-" + std::to_string(CPU_COUNT(&set)));
    EXPECT_EQ(job.end(), 0);
}

// Standard error is a file here, so the report of the PE's end is above the limit.
TEST(Streams, AFileSizeLimitDoesNotKillTheLauncher) {
    JobUnderTest job({"-n", "1", "sh", "-c", "ulimit -f 0; exec " RUN_TEST_LAUNCHER " -n 1 sh -c 'exit 3'"});
    EXPECT_EQ(job.end(), 3) << job.errors();
}

}  // namespace
}  // namespace npushmem::run
