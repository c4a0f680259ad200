// SPDX-License-Identifier: BSD-3-Clause
#include "bench/engine/progress_line.hpp"

#include <fcntl.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sys/ioctl.h>
#include <unistd.h>

#include <array>
#include <cstdlib>
#include <sstream>

namespace npushmem::bench {

namespace {

using namespace std::chrono_literals;

class SetClock final : public Clock {
public:
    std::chrono::nanoseconds now() override { return time; }

    std::chrono::nanoseconds time{1h};
};

class ProgressLineTest : public testing::Test {
protected:
    // Returns the output since the last call.
    std::string output() {
        const std::string text = out_.str();
        out_.str("");
        return text;
    }

    SetClock clock_;
    std::ostringstream out_;
};

constexpr const char* erased = "\r\x1b[K";

TEST_F(ProgressLineTest, ShowsStepsAndTheTimeLeft) {
    ProgressLine line(clock_, out_, true);
    clock_.time += 11s;
    line.begin_step("measuring put 64 KiB", 11, 40);
    EXPECT_EQ(output(), erased + std::string("measuring put 64 KiB (12 of 40), 29 s left"));
}

TEST_F(ProgressLineTest, IsSilentInShortRuns) {
    {
        ProgressLine line(clock_, out_, true);
        clock_.time += 1999ms;
        line.begin_step("short", 1, 2);
        line.advance(1, 2);
    }
    EXPECT_EQ(output(), "");
}

TEST_F(ProgressLineTest, IsSilentWithoutATerminal) {
    {
        ProgressLine line(clock_, out_, false);
        clock_.time += 1h;
        line.begin_step("long", 1, 2);
        line.advance(1, 2);
        line.clear();
    }
    EXPECT_EQ(output(), "");
}

TEST_F(ProgressLineTest, IsRewrittenAtMostFiveTimesPerSecond) {
    ProgressLine line(clock_, out_, true);
    clock_.time += 10s;
    line.begin_step("first", 0, 2);
    EXPECT_EQ(output(), erased + std::string("first (1 of 2)"));  // nothing is over, so the time left is unknown
    clock_.time += 199ms;
    line.begin_step("second", 1, 2);
    EXPECT_EQ(output(), "");
    clock_.time += 1ms;
    line.advance(0, 4);
    EXPECT_EQ(output(), erased + std::string("second (2 of 2), 11 s left"));
}

TEST_F(ProgressLineTest, CountsPiecesOfAStep) {
    ProgressLine line(clock_, out_, true);
    clock_.time += 30s;
    line.begin_step("startup", 1, 4);
    (void)output();
    clock_.time += 1s;
    line.advance(1, 2);
    EXPECT_EQ(output(), erased + std::string("startup (2 of 4), 52 s left"));  // 3/8 are over after 31 s
}

TEST_F(ProgressLineTest, CountsParts) {
    ProgressLine line(clock_, out_, true);
    clock_.time += 30s;
    line.begin_part(1, 2);
    line.begin_step("put", 2, 4);
    EXPECT_EQ(output(), erased + std::string("put (3 of 4, part 2 of 2), 10 s left"));
}

TEST_F(ProgressLineTest, WeighsStepsOfUnequalLengths) {
    ProgressLine line(clock_, out_, true);
    clock_.time += 5s;
    line.begin_step("tree of 1000000 PEs", 98, 100, 0.25);
    EXPECT_EQ(output(), erased + std::string("tree of 1000000 PEs (99 of 100), 15 s left"));
}

TEST_F(ProgressLineTest, IsRemovedOnceBeforeOtherOutputAndAtTheEnd) {
    {
        ProgressLine line(clock_, out_, true);
        line.clear();
        EXPECT_EQ(output(), "");
        clock_.time += 5s;
        line.begin_step("a", 0, 2);
        (void)output();
        line.clear();
        EXPECT_EQ(output(), erased);
        line.clear();
        EXPECT_EQ(output(), "");
        clock_.time += 5s;
        line.begin_step("b", 1, 2);
        (void)output();
    }
    EXPECT_EQ(output(), erased);
}

TEST_F(ProgressLineTest, CutsLongLines) {
    ProgressLine line(clock_, out_, true, 10);
    clock_.time += 5s;
    line.begin_step("0123456789abc", 0, 2);
    EXPECT_EQ(output(), erased + std::string("0123456789"));
}

class UserTerminalTest : public testing::Test {
protected:
    void SetUp() override {
        master_ = ::posix_openpt(O_RDWR | O_NOCTTY | O_CLOEXEC);
        if (master_ < 0) GTEST_SKIP() << "this system has no pseudoterminals";
        ASSERT_EQ(::grantpt(master_), 0);
        ASSERT_EQ(::unlockpt(master_), 0);
        std::array<char, 64> name{};
        ASSERT_EQ(::ptsname_r(master_, name.data(), name.size()), 0);
        path_ = name.data();
        terminal_ = ::open(path_.c_str(), O_RDWR | O_NOCTTY | O_CLOEXEC);
        ASSERT_GE(terminal_, 0);
        winsize size{};
        size.ws_col = 120;
        ASSERT_EQ(::ioctl(terminal_, TIOCSWINSZ, &size), 0);
        ASSERT_EQ(::pipe(pipe_.data()), 0);
        file_ = ::open("/dev/null", O_WRONLY | O_CLOEXEC);
        ASSERT_GE(file_, 0);
    }
    ~UserTerminalTest() override {
        for (const int each : {master_, terminal_, pipe_[0], pipe_[1], file_})
            if (each >= 0) ::close(each);
    }

    std::string path_;
    int master_ = -1;
    int terminal_ = -1;
    int file_ = -1;
    std::array<int, 2> pipe_{-1, -1};
};

TEST_F(UserTerminalTest, IsTheStandardErrorOrTheLaunchersIfThatIsAPipe) {
    const UserTerminal own(terminal_, "xterm", "");
    EXPECT_TRUE(own.is_terminal());
    EXPECT_EQ(own.columns(), 119U);
    const UserTerminal of_launcher(pipe_[1], "xterm", path_);
    EXPECT_TRUE(of_launcher.is_terminal());
    EXPECT_EQ(of_launcher.columns(), 119U);
}

TEST_F(UserTerminalTest, IsNoneForRedirectedErrorsAndDumbTerminals) {
    EXPECT_FALSE(UserTerminal(file_, "xterm", path_).is_terminal()) << "redirected by the user";
    EXPECT_FALSE(UserTerminal(pipe_[1], "xterm", "").is_terminal()) << "without a launcher";
    EXPECT_FALSE(UserTerminal(terminal_, "dumb", "").is_terminal());
    EXPECT_FALSE(UserTerminal(pipe_[1], "dumb", path_).is_terminal());
    EXPECT_EQ(UserTerminal(file_, "xterm", path_).columns(), 79U);
}

TEST(FormatTimeLeft, HasOneUnit) {
    EXPECT_EQ(format_time_left(-1s), "0 s");
    EXPECT_EQ(format_time_left(1ns), "1 s");
    EXPECT_EQ(format_time_left(119s), "119 s");
    EXPECT_EQ(format_time_left(10min), "10 min");
    EXPECT_EQ(format_time_left(119min), "119 min");
    EXPECT_EQ(format_time_left(3h), "3 h");
}

}  // namespace

}  // namespace npushmem::bench
