// SPDX-License-Identifier: BSD-3-Clause
// Standard input that is a terminal, in its foreground and in its background.
#include <gmock/gmock.h>
#include <pty.h>
#include <unistd.h>

#include <csignal>
#include <string>

#include "tests/integration/run/job_under_test.hpp"

namespace npushmem::run {
namespace {

class Terminal : public ::testing::Test {
protected:
    void SetUp() override {
        int master = -1;
        int slave = -1;
        ASSERT_EQ(::openpty(&master, &slave, nullptr, nullptr, nullptr), 0);
        master_ = FileDescriptor(master);
        slave_ = FileDescriptor(slave);
    }
    void type(const std::string& text) const {
        ASSERT_EQ(::write(master_.get(), text.data(), text.size()), static_cast<ssize_t>(text.size()));
    }
    [[nodiscard]] JobSettings settings(bool in_background) const {
        JobSettings made;
        made.terminal = slave_.get();
        made.in_background = in_background;
        return made;
    }

    FileDescriptor master_;
    FileDescriptor slave_;
};

constexpr const char* end_of_input = "\x04";

TEST_F(Terminal, InputReachesPeZero) {
    JobUnderTest job(helper_job({"-n", "2"}, {"0:stdin"}), settings(false));
    type("typed\n");
    type(end_of_input);
    EXPECT_EQ(job.reports(1)[0].word, "stdin[typed|]");
    EXPECT_EQ(job.end(), 0);
}

TEST_F(Terminal, InterruptKeyEndsTheJob) {
    JobUnderTest job(helper_job({"-n", "2"}, {"report=ready", "pause"}), settings(false));
    EXPECT_EQ(job.reports(2).size(), 2U);
    type("\x03");
    EXPECT_EQ(job.end(), 128 + SIGINT);
}

TEST_F(Terminal, AJobInTheBackgroundRunsAndLeavesTheInputAlone) {
    JobUnderTest job(helper_job({"-n", "2"}, {"expect=10", "report=ready", "1:await=10"}), settings(true));
    type("for somebody else\n");
    EXPECT_EQ(job.reports(3).size(), 3U);  // the foreground's process and both PEs
    job.signal(SIGUSR1);
    EXPECT_EQ(job.reports(1)[0].word, "signal-10");
    EXPECT_EQ(job.end(), 0);
}

TEST_F(Terminal, AJobBroughtToTheForegroundReads) {
    JobUnderTest job(helper_job({"-n", "1"}, {"stdin"}), settings(true));
    const int foreground = job.reports(1)[0].pid;
    ASSERT_EQ(::kill(foreground, SIGUSR1), 0);
    type("typed\n");
    type(end_of_input);
    EXPECT_EQ(job.reports(1)[0].word, "stdin[typed|]");
    EXPECT_EQ(job.end(), 0);
}

}  // namespace
}  // namespace npushmem::run
