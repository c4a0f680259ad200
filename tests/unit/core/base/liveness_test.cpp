// SPDX-License-Identifier: BSD-3-Clause
#include <gmock/gmock.h>
#include <signal.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>

#include <memory>
#include <set>

#include "core/base/liveness.hpp"
#include "tests/fakes/open_descriptors.hpp"

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

ProcessLiveness::ProcessLookup lookup(const std::vector<ProcessId>& processes) {
    return [processes](int pe) { return processes[static_cast<std::size_t>(pe)]; };
}

// The number of processes that may be watched.
class ProcessLivenessWatching : public ::testing::TestWithParam<std::size_t> {};
INSTANTIATE_TEST_SUITE_P(Processes, ProcessLivenessWatching, ::testing::Values(0, 1, 256));

TEST_P(ProcessLivenessWatching, NamesTheFirstDeadPeOfTheRange) {
    Child child;
    const auto process = identify_process(child.pid());
    ASSERT_TRUE(process.has_value());
    ProcessLiveness liveness(4, lookup({this_process(), *process, {}, *process}), GetParam());
    EXPECT_EQ(liveness.find_dead({0, 1, 4}), std::nullopt);
    EXPECT_EQ(liveness.find_dead({0, 1, 4}), std::nullopt) << "watched now, if it may be";
    child.become_zombie();
    EXPECT_EQ(liveness.find_dead({0, 1, 4}), 1);
    EXPECT_EQ(liveness.find_dead({2, 1, 2}), 3);
    EXPECT_EQ(liveness.find_dead({0, 2, 2}), std::nullopt);
    EXPECT_EQ(liveness.find_dead({3, 1, 5}), 3);
    EXPECT_EQ(liveness.find_dead({4, 1, 5}), std::nullopt) << "PEs beyond the table are not known to be dead";
    child.reap();
    EXPECT_EQ(liveness.find_dead({0, 1, 4}), 1) << "as long as nobody has its number";
}

TEST_P(ProcessLivenessWatching, FindsEachOfManyWithinAWalk) {
    std::vector<std::unique_ptr<Child>> children;
    std::vector<ProcessId> processes;
    for (int i = 0; i < 40; ++i) {
        children.push_back(std::make_unique<Child>());
        processes.push_back(*identify_process(children.back()->pid()));
    }
    ProcessLiveness liveness(40, lookup(processes), GetParam());
    const PeRange all{0, 1, 40};
    // 16 checks per call.
    for (int call = 0; call < 3; ++call) ASSERT_EQ(liveness.find_dead(all), std::nullopt);
    for (const int dead : {39, 0, 17}) {
        children[static_cast<std::size_t>(dead)]->become_zombie();
        std::set<int> found;
        for (int call = 0; call < 3; ++call)
            if (const auto pe = liveness.find_dead(PeRange::one(dead))) found.insert(*pe);
        EXPECT_THAT(found, ::testing::ElementsAre(dead));
    }
}

TEST_P(ProcessLivenessWatching, ANumberThatBelongsToAnotherProcessIsADeadPe) {
    Child child;
    ProcessId reused = *identify_process(child.pid());
    ++reused.start;
    ProcessLiveness liveness(2, lookup({this_process(), reused}), GetParam());
    EXPECT_EQ(liveness.find_dead({0, 1, 2}), 1);
    EXPECT_EQ(liveness.find_dead({0, 1, 2}), 1) << "it is not watched";
}

TEST(ProcessLiveness, ListsAllPesThatHaveEnded) {
    Child zombie;
    const auto process = identify_process(zombie.pid());
    ASSERT_TRUE(process.has_value());
    ProcessId reused = this_process();
    ++reused.start;
    const ProcessLiveness liveness(5, lookup({this_process(), *process, {}, reused, *process}));
    using Depth = ProcessLiveness::Depth;
    using ::testing::ElementsAre;
    EXPECT_THAT(liveness.ended(Depth::proc), ElementsAre(3));
    EXPECT_THAT(liveness.ended(Depth::kernel), ElementsAre());
    zombie.become_zombie();
    EXPECT_THAT(liveness.ended(Depth::proc), ElementsAre(1, 3, 4));
    EXPECT_THAT(liveness.ended(Depth::kernel), ElementsAre());
    zombie.reap();
    EXPECT_THAT(liveness.ended(Depth::kernel), ElementsAre(1, 4));
}

TEST(SharedTurn, IsTakenOnceInAnInterval) {
    using std::chrono::milliseconds;
    const auto at = [](int ms) { return std::chrono::steady_clock::time_point(milliseconds(ms)); };
    SharedTurn turn;
    EXPECT_TRUE(turn.take(at(1000), milliseconds(100)));
    EXPECT_FALSE(turn.take(at(1000), milliseconds(100)));
    EXPECT_FALSE(turn.take(at(1099), milliseconds(100)));
    EXPECT_TRUE(turn.take(at(1100), milliseconds(100)));
    EXPECT_FALSE(turn.take(at(1150), milliseconds(100)));
    EXPECT_FALSE(turn.take(at(1001), milliseconds(100))) << "the clock was read before the turn";
    EXPECT_TRUE(turn.take(at(900), milliseconds(100))) << "a clock that is behind";
    EXPECT_TRUE(turn.take(at(1150), milliseconds(100))) << "and one that is not";
}

TEST(ProcessLiveness, WatchesAsManyAsItMayAndReleasesThem) {
    const Child child;
    const ProcessId process = *identify_process(child.pid());
    const std::size_t before = open_descriptors();
    {
        ProcessLiveness liveness(8, lookup(std::vector<ProcessId>(8, process)), 5);
        EXPECT_EQ(open_descriptors(), before) << "none before the first check";
        EXPECT_EQ(liveness.find_dead({0, 1, 8}), std::nullopt);
        EXPECT_EQ(open_descriptors(), before + 5 + 1) << "and one that waits for all";
    }
    EXPECT_EQ(open_descriptors(), before);
}

TEST(ProcessLiveness, TakesAQuarterOfTheDescriptorsAtMost) {
    rlimit before{};
    ASSERT_EQ(::getrlimit(RLIMIT_NOFILE, &before), 0);
    rlimit few = before;
    few.rlim_cur = 100;
    ASSERT_EQ(::setrlimit(RLIMIT_NOFILE, &few), 0);
    EXPECT_EQ(ProcessLiveness::affordable_pidfds(), 25U);
    ASSERT_EQ(::setrlimit(RLIMIT_NOFILE, &before), 0);
    EXPECT_LE(ProcessLiveness::affordable_pidfds(), 256U);
}

TEST(ListProcesses, ContainsThisProcessAndItsChildren) {
    const Child child;
    const std::vector<pid_t> processes = list_processes();
    EXPECT_THAT(processes, ::testing::IsSupersetOf({::getpid(), child.pid()}));
    EXPECT_THAT(processes, ::testing::Each(::testing::Gt(0)));
}

}  // namespace

}  // namespace npushmem
