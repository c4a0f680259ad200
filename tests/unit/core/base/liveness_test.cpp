// SPDX-License-Identifier: BSD-3-Clause
#include <gmock/gmock.h>
#include <signal.h>
#include <sys/wait.h>
#include <unistd.h>

#include "core/base/liveness.hpp"

namespace npushmem {

namespace {

TEST(ParseProcessStat, TheCommandMayHoldAnything) {
    const auto stat = parse_process_stat(
        "4711 (a) Z (b c) S 1 4711 4711 0 -1 4194560 100 0 0 0 1 2 0 0 20 0 1 0 987654 1000 200 "
        "18446744073709551615\n");
    ASSERT_TRUE(stat.has_value());
    EXPECT_EQ(stat->state, 'S');
    EXPECT_EQ(stat->start, 987654U);
}

TEST(ParseProcessStat, RejectsMalformedText) {
    EXPECT_FALSE(parse_process_stat("").has_value());
    EXPECT_FALSE(parse_process_stat("4711 (a)").has_value());
    EXPECT_FALSE(parse_process_stat("4711 (a) ").has_value());
    EXPECT_FALSE(parse_process_stat("4711 (a) S 1 2 3").has_value());
}

// A child that only waits to be killed.
class Child {
public:
    Child() : pid_(::fork()) {
        if (pid_ == 0) {
            for (;;) ::pause();
        }
    }
    Child(const Child&) = delete;
    Child& operator=(const Child&) = delete;
    ~Child() {
        if (!reaped_) reap();
    }

    [[nodiscard]] pid_t pid() const { return pid_; }
    // Killed and dead, but not yet waited for.
    void become_zombie() const {
        ::kill(pid_, SIGKILL);
        siginfo_t info{};
        ::waitid(P_PID, static_cast<id_t>(pid_), &info, WEXITED | WNOWAIT);
    }
    void reap() {
        ::kill(pid_, SIGKILL);
        ::waitpid(pid_, nullptr, 0);
        reaped_ = true;
    }

private:
    pid_t pid_;
    bool reaped_ = false;
};

TEST(IsAlive, FollowsAProcessToItsEnd) {
    Child child;
    const auto process = identify_process(child.pid());
    ASSERT_TRUE(process.has_value());
    EXPECT_TRUE(is_alive(*process));
    child.become_zombie();
    EXPECT_FALSE(is_alive(*process)) << "a zombie counts as dead";
    child.reap();
    EXPECT_FALSE(is_alive(*process));
    EXPECT_FALSE(identify_process(child.pid()).has_value());
}

TEST(IsAlive, DistinguishesProcessesOfOneNumberByStartTime) {
    ProcessId other = this_process();
    EXPECT_TRUE(is_alive(other));
    ++other.start;
    EXPECT_FALSE(is_alive(other));
    other.start = 0;
    EXPECT_TRUE(is_alive(other)) << "start unknown";
}

TEST(ProcessLiveness, NamesTheFirstDeadPeOfTheRange) {
    Child child;
    const auto process = identify_process(child.pid());
    ASSERT_TRUE(process.has_value());
    ProcessLiveness liveness({this_process(), *process, {}, *process});
    EXPECT_EQ(liveness.find_dead({0, 1, 4}), std::nullopt);
    child.become_zombie();
    EXPECT_EQ(liveness.find_dead({0, 1, 4}), 1);
    EXPECT_EQ(liveness.find_dead({2, 1, 2}), 3);
    EXPECT_EQ(liveness.find_dead({0, 2, 2}), std::nullopt);
    EXPECT_EQ(liveness.find_dead({3, 1, 5}), 3);
    EXPECT_EQ(liveness.find_dead({4, 1, 5}), std::nullopt) << "PEs beyond the table are not known to be dead";
}

TEST(ListProcesses, ContainsThisProcessAndItsChildren) {
    const Child child;
    const std::vector<pid_t> processes = list_processes();
    EXPECT_THAT(processes, ::testing::IsSupersetOf({::getpid(), child.pid()}));
    EXPECT_THAT(processes, ::testing::Each(::testing::Gt(0)));
}

}  // namespace

}  // namespace npushmem
