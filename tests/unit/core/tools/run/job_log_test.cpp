// SPDX-License-Identifier: BSD-3-Clause
#include "core/tools/run/job_log.hpp"

#include <fcntl.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include <array>
#include <atomic>
#include <csignal>
#include <thread>

namespace npushmem::run {

namespace {

using std::chrono::milliseconds;
using ::testing::ElementsAre;
using ::testing::IsEmpty;
using ::testing::Pair;

bool count_failed_calls(const LauncherChannel& channel, std::int64_t by) {
    std::int64_t* const counter = channel.map_failed_calls();
    if (counter != nullptr) std::atomic_ref(*counter).fetch_add(by, std::memory_order_relaxed);
    return counter != nullptr;
}

LauncherRecord line_of(int pe, const std::string& text) { return {LauncherRecord::Kind::line, pe, "", text}; }

class JobLogTest : public ::testing::Test {
protected:
    void SetUp() override {
        std::array<int, 2> ends{};
        ASSERT_EQ(::pipe2(ends.data(), O_CLOEXEC | O_NONBLOCK), 0);
        reading_ = FileDescriptor(ends[0]);
        writing_ = FileDescriptor(ends[1]);
        ASSERT_TRUE(log_.open());
    }
    [[nodiscard]] LauncherChannel channel_of(int index, int errors = STDERR_FILENO) const {
        struct stat found {};
        EXPECT_EQ(::fstat(writing_.get(), &found), 0);
        return LauncherChannel(std::to_string(writing_.get()) + ":" + std::to_string(found.st_dev) + ":" +
                               std::to_string(found.st_ino) + log_.description(index, errors));
    }
    [[nodiscard]] int log_descriptor() const { return std::stoi(log_.description(0, STDERR_FILENO).substr(1)); }
    [[nodiscard]] std::int64_t log_bytes() const {
        struct stat found {};
        EXPECT_EQ(::fstat(log_descriptor(), &found), 0);
        return found.st_blocks * 512;
    }
    std::string requests() {
        std::array<char, 4096> bytes{};
        const ssize_t count = ::read(reading_.get(), bytes.data(), bytes.size());
        return {bytes.data(), static_cast<std::size_t>(std::max(count, ssize_t{0}))};
    }

    FileDescriptor reading_;
    FileDescriptor writing_;
    JobLog log_ = JobLog::create(1000);
};

TEST_F(JobLogTest, RecordsOfManyWritersArriveWhole) {
    constexpr int writers = 4;
    constexpr int records = 200;
    std::vector<std::thread> threads;
    for (int pe = 0; pe < writers; ++pe)
        threads.emplace_back([channel = channel_of(pe), pe] {
            for (int i = 0; i < records; ++i)
                EXPECT_TRUE(channel.append(line_of(pe, std::to_string(i) + std::string(9000, 'x'))));
        });
    std::array<int, writers> next{};
    for (int seen = 0; seen < writers * records;)
        for (const auto& record : log_.read()) {
            const auto pe = static_cast<std::size_t>(record.pe);
            EXPECT_EQ(record.text, std::to_string(next.at(pe)++) + std::string(9000, 'x'));
            ++seen;
        }
    for (auto& thread : threads) thread.join();
    EXPECT_THAT(log_.read(), IsEmpty());
}

TEST_F(JobLogTest, TheLauncherIsWokenOnce) {
    const LauncherChannel channel = channel_of(0);
    for (int i = 0; i < 3; ++i) EXPECT_TRUE(channel.append(line_of(0, "again")));
    EXPECT_EQ(requests(), "wake\n");
    EXPECT_TRUE(channel.append(line_of(0, "again")));
    EXPECT_EQ(requests(), "wake\n");
}

// Nobody reads the pipe, which is full.
TEST_F(JobLogTest, ASlowLauncherLosesNoRecord) {
    while (::write(writing_.get(), "wake\n", 5) == 5) {
    }
    EXPECT_TRUE(channel_of(0).append(line_of(0, "late")));
    EXPECT_THAT(log_.read(), ElementsAre(line_of(0, "late")));
}

TEST_F(JobLogTest, TheSupervisorReadsRecordsThatTheLauncherHasNotShown) {
    const LauncherChannel channel = channel_of(0);
    for (const char* text : {"shown", "read only", "not read"}) {
        EXPECT_TRUE(channel.append(line_of(0, text)));
        if (std::string_view(text) == "not read") continue;
        EXPECT_THAT(log_.read(), ElementsAre(line_of(0, text)));
        if (std::string_view(text) == "shown") log_.mark_shown();
    }
    const int supervisor = ::fork();  // which has the same descriptors and its own place in the file
    if (supervisor == 0) {
        log_.continue_after_launcher();
        const auto rest = log_.read();
        ::_exit(rest == std::vector{line_of(0, "read only"), line_of(0, "not read")} ? 0 : 1);
    }
    int status = -1;
    ASSERT_EQ(::waitpid(supervisor, &status, 0), supervisor);
    EXPECT_EQ(status, 0);
    log_.claim_for_launcher();
    (void)log_.read();
    log_.mark_shown();
    log_.continue_after_launcher();
    EXPECT_THAT(log_.read(), IsEmpty());
}

TEST_F(JobLogTest, TheMemoryOfShownRecordsIsFreed) {
    const LauncherChannel channel = channel_of(0);
    EXPECT_TRUE(count_failed_calls(channel, 1));
    for (int i = 0; i < 200; ++i) EXPECT_TRUE(channel.append(line_of(0, std::string(10000, 'x'))));
    EXPECT_EQ(log_.read().size(), 200U);
    EXPECT_GE(log_bytes(), 2000000) << "not shown yet";
    log_.mark_shown();
    EXPECT_LE(log_bytes(), 100000);
    EXPECT_TRUE(channel.append(line_of(0, "next")));
    EXPECT_THAT(log_.read(), ElementsAre(line_of(0, "next")));
    EXPECT_THAT(log_.failed_calls(), ElementsAre(Pair(0, 1)));
}

TEST_F(JobLogTest, CountsFailedCallsOfEachPe) {
    EXPECT_THAT(log_.failed_calls(), IsEmpty());
    std::vector<std::thread> threads;
    for (int i = 0; i < 4; ++i)
        threads.emplace_back([channel = channel_of(999)] {
            for (int call = 0; call < 100; ++call) EXPECT_TRUE(count_failed_calls(channel, 1));
        });
    for (auto& thread : threads) thread.join();
    EXPECT_TRUE(count_failed_calls(channel_of(3), 2));
    EXPECT_TRUE(count_failed_calls(channel_of(3), -1));
    EXPECT_TRUE(count_failed_calls(channel_of(4), 1));
    EXPECT_TRUE(count_failed_calls(channel_of(4), -1));
    EXPECT_THAT(log_.failed_calls(), ElementsAre(Pair(3, 1), Pair(999, 400)));
    EXPECT_THAT(log_.read(), IsEmpty()) << "counters are no records";
}

TEST_F(JobLogTest, ComparesTheStandardErrorOfAPeWithTheLaunchers) {
    EXPECT_TRUE(channel_of(0).has_launcher_stderr());
    EXPECT_FALSE(channel_of(0, writing_.get()).has_launcher_stderr());
}

void set_file_limit(rlim_t bytes) {
    const rlimit limit{bytes, bytes};
    (void)::setrlimit(RLIMIT_FSIZE, &limit);
}

// Part of a record fits, and then nothing. The limit is that of a child, which could not raise it again.
TEST_F(JobLogTest, AFileSizeLimitOfAPeIsAnErrorNotASignal) {
    const LauncherChannel channel = channel_of(0);
    struct stat found {};
    ASSERT_EQ(::fstat(log_descriptor(), &found), 0);
    const int pe = ::fork();
    if (pe == 0) {
        set_file_limit(static_cast<rlim_t>(found.st_size) + 8);
        for (int i = 0; i < 3; ++i)
            if (channel.append(line_of(0, "above the limit"))) ::_exit(1);
        ::_exit(count_failed_calls(channel, 1) ? 0 : 2);
    }
    int status = -1;
    ASSERT_EQ(::waitpid(pe, &status, 0), pe);
    EXPECT_EQ(status, 0);
    EXPECT_TRUE(channel.append(line_of(0, "whole")));
    EXPECT_THAT(log_.read(), ElementsAre(line_of(0, "whole")));
    EXPECT_THAT(log_.failed_calls(), ElementsAre(Pair(0, 1)));
}

TEST(JobLogNone, AFileSizeLimitIsAnErrorNotASignal) {
    const int launcher = ::fork();
    if (launcher == 0) {
        set_file_limit(0);
        ::_exit(JobLog::create(4).open() ? 1 : 0);
    }
    int status = -1;
    ASSERT_EQ(::waitpid(launcher, &status, 0), launcher);
    EXPECT_EQ(status, 0);
}

TEST(JobLogNone, IsEmpty) {
    JobLog log;
    EXPECT_EQ(log.description(0, 2), "");
    EXPECT_THAT(log.read(), IsEmpty());
    EXPECT_THAT(log.failed_calls(), IsEmpty());
    log.mark_shown();
    log.claim_for_launcher();
    log.continue_after_launcher();
}

constexpr Diagnostics::Time begin{};

LauncherRecord from(int pe, const std::string& text) {
    return {LauncherRecord::Kind::line, pe, "pe " + std::to_string(pe) + "/17", text};
}

TEST(Diagnostics, RangesJoinNeighbours) {
    EXPECT_EQ(ranges_of({}), "");
    EXPECT_EQ(ranges_of({4}), "4");
    EXPECT_EQ(ranges_of({0, 1, 2, 5, 7, 8}), "0-2,5,7-8");
}

TEST(Diagnostics, OneLineOfAllPesIsDueAtOnce) {
    Diagnostics diagnostics(17, false);
    for (int pe = 16; pe >= 0; --pe) {
        EXPECT_EQ(diagnostics.take(begin), "") << "before PE " << pe;
        diagnostics.add(from(pe, "error api: npushmem_put: PE 99 does not exist"), begin);
    }
    EXPECT_EQ(diagnostics.take(begin), "npushmem PEs 0-16: error api: npushmem_put: PE 99 does not exist\n");
    EXPECT_TRUE(diagnostics.empty());
    EXPECT_FALSE(diagnostics.deadline().has_value());
}

TEST(Diagnostics, DoesNotChangeALineOfOnePe) {
    Diagnostics diagnostics(17, false);
    diagnostics.add(from(3, "error api: mine"), begin);
    diagnostics.add({LauncherRecord::Kind::line, 4, "", "error api: before the start"}, begin);
    EXPECT_EQ(diagnostics.deadline(), begin + Diagnostics::merge_window);
    EXPECT_EQ(diagnostics.take(begin + Diagnostics::merge_window - milliseconds(1)), "");
    EXPECT_EQ(diagnostics.take(begin + Diagnostics::merge_window),
              "npushmem pe 3/17 error api: mine\nnpushmem error api: before the start\n");
}

TEST(Diagnostics, ALineOfASinglePeJobIsDueAtOnce) {
    Diagnostics diagnostics(1, false);
    diagnostics.add({LauncherRecord::Kind::line, 0, "pe 0/1", "warn config: x"}, begin);
    EXPECT_EQ(diagnostics.take(begin), "npushmem pe 0/1 warn config: x\n");
}

TEST(Diagnostics, DifferentLinesAreNotMergedAndKeepTheirOrder) {
    Diagnostics diagnostics(4, false);
    diagnostics.add(from(1, "b"), begin);
    diagnostics.add(from(0, "a"), begin);
    diagnostics.add(from(2, "b"), begin);
    EXPECT_EQ(diagnostics.take_all(), "npushmem PEs 1-2: b\nnpushmem pe 0/17 a\n");
}

// What happened twice is reported twice.
TEST(Diagnostics, AFailedStartIsOneLineOfAllPesThatItEnds) {
    const std::string cause = "start-up failed at transports: there is no transport plugin 'x'";
    const std::string aborted = "error api: init: start-up failed at memory: rank 1 (pid 7) aborted the job: ";
    Diagnostics diagnostics(4, false);
    diagnostics.add(line_of(0, aborted + cause), begin);  // may arrive before the cause
    diagnostics.add(line_of(1, "error api: init: " + cause), begin);
    diagnostics.add(line_of(2, aborted + cause), begin);
    diagnostics.add(line_of(3, aborted + "start-up failed at bootstrap: another cause"), begin);
    EXPECT_EQ(diagnostics.take_all(), "npushmem PEs 0-2: error api: init: " + cause + "\n" +
                                          text_of(line_of(3, aborted + "start-up failed at bootstrap: another cause")));
}

TEST(Diagnostics, DoesNotMergeRepeatedLinesOfOnePe) {
    Diagnostics diagnostics(2, false);
    for (const int pe : {0, 0, 1, 0}) diagnostics.add(from(pe, "a"), begin);
    EXPECT_EQ(diagnostics.take(begin), "");
    EXPECT_EQ(diagnostics.take_all(), "npushmem PEs 0-1: a\nnpushmem pe 0/17 a\nnpushmem pe 0/17 a\n");
}

TEST(Diagnostics, DoesNotMergeLinesOfAnUnknownPe) {
    Diagnostics diagnostics(2, true);
    for (const int pe : {-1, -1, 0}) diagnostics.add({LauncherRecord::Kind::line, pe, "", "a"}, begin);
    EXPECT_EQ(diagnostics.take_all(), "npushmem a\nnpushmem a\n[pe 0] npushmem a\n");
}

TEST(Diagnostics, LaterLinesExtendTheMergeWindowUpToALimit) {
    Diagnostics diagnostics(1000, false);
    auto now = begin;
    for (int pe = 0; now < begin + Diagnostics::limit; ++pe, now += Diagnostics::merge_window / 2) {
        EXPECT_EQ(diagnostics.take(now), "");
        diagnostics.add(from(pe, "a"), now);
    }
    EXPECT_EQ(diagnostics.deadline(), begin + Diagnostics::limit);
    EXPECT_NE(diagnostics.take(now), "");
}

TEST(Diagnostics, AMessageOfTheLauncherFollowsPendingLines) {
    Diagnostics diagnostics(3, false);
    diagnostics.add({LauncherRecord::Kind::message, -1, "", "alone"}, begin);
    EXPECT_EQ(diagnostics.take(begin), "npushmem-run: alone\n");
    diagnostics.add(from(0, "a"), begin);
    diagnostics.add({LauncherRecord::Kind::message, -1, "", "behind"}, begin);
    diagnostics.add(from(1, "a"), begin);
    EXPECT_EQ(diagnostics.take(begin), "");
    EXPECT_EQ(diagnostics.take_all(), "npushmem PEs 0-1: a\nnpushmem-run: behind\n");
}

TEST(Diagnostics, TagsEachLineOfOnePe) {
    Diagnostics diagnostics(3, true);
    diagnostics.add(from(2, "a\nb"), begin);
    for (const int pe : {0, 1}) diagnostics.add(from(pe, "c"), begin);
    EXPECT_EQ(diagnostics.take_all(), "[pe 2] npushmem pe 2/17 a\n[pe 2] b\nnpushmem PEs 0-1: c\n");
}

TEST(Diagnostics, FailedCallsAreListedByNumber) {
    EXPECT_EQ(describe_failed_calls({{5, 1}}), "1 call failed (1 on PE 5)");
    EXPECT_EQ(describe_failed_calls({{0, 1}, {1, 1}, {2, 1}, {7, 40}}),
              "43 calls failed (1 on each of PEs 0-2, 40 on PE 7)");
}

}  // namespace

}  // namespace npushmem::run
