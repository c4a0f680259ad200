// SPDX-License-Identifier: BSD-3-Clause
// What tests of whole jobs (tests/unit/bootstrap/uid) do not reach.
#include "bootstrap/rendezvous/shared_memory_bootstrap.hpp"

#include <gmock/gmock.h>
#include <sys/wait.h>
#include <unistd.h>

#include <csignal>
#include <memory>
#include <string>
#include <thread>
#include <utility>
#include <vector>

namespace npushmem::rendezvous {
namespace {

using ::testing::AllOf;
using ::testing::HasSubstr;

// Ranks that the test drives itself.
class SharedMemoryRanks : public ::testing::Test {
protected:
    std::unique_ptr<SharedMemoryBootstrap> attach(int rank, Milliseconds timeout = std::chrono::seconds(60)) {
        auto memory = SharedSegment::attach(memory_.handle());
        EXPECT_TRUE(memory.ok()) << memory.status().message();
        auto opened =
            SharedMemoryBootstrap::open(std::move(memory).value(), Identity{rank, ::getpid(), "here"}, ranks, timeout);
        EXPECT_TRUE(opened.ok()) << opened.status().message();
        return std::move(opened).value();
    }

    static constexpr int ranks = 2;
    SharedSegment memory_ = SharedMemoryBootstrap::create_memory(ranks).value();
};

Status never_fails() { return {}; }

TEST_F(SharedMemoryRanks, TheOpeningBarrierEndsWithTheFailureOfTheService) {
    const auto alone = attach(0);
    int asked = 0;
    const Status failed = alone->opening_barrier(Deadline::never(), [&asked]() -> Status {
        if (++asked < 3) return {};
        return {Code::peer_dead, "rank 1 never came"};
    });
    EXPECT_EQ(failed.code(), Code::peer_dead);
    EXPECT_EQ(failed.message(), "rank 1 never came");
    // A rank that attaches later learns of it too.
    EXPECT_EQ(attach(1)->barrier().message(), "rank 1 never came");
}

TEST_F(SharedMemoryRanks, TheOpeningBarrierHasADeadline) {
    const auto alone = attach(0);
    const Status late = alone->opening_barrier(Deadline::after(Milliseconds(1)), never_fails);
    EXPECT_EQ(late.code(), Code::timeout);
    EXPECT_THAT(late.message(),
                AllOf(HasSubstr("rank 0 (pid "), HasSubstr("for rank 1 during"), HasSubstr("barrier #0")));
}

// A child's copy of the object ends with the child, and its rank continues.
TEST_F(SharedMemoryRanks, AChildOfForkDoesNotLeaveForItsParent) {
    auto first = attach(0);
    auto second = attach(1);
    const pid_t child = ::fork();
    if (child == 0) {
        first.reset();
        ::_exit(0);
    }
    ::waitpid(child, nullptr, 0);
    Status of_second;
    std::thread other([&] { of_second = second->barrier(); });
    EXPECT_TRUE(first->barrier().ok());
    other.join();
    EXPECT_TRUE(of_second.ok()) << of_second.message();
}

// Rank 1 as a process, which passes the first barrier and then calls `then`. A killed one is gone when kill() returns.
class OtherRank {
public:
    template <class Attach, class Then>
    OtherRank(const Attach& attach, const Then& then) : pid_(::fork()) {
        if (pid_ != 0) return;
        const auto rank = attach(1);
        (void)rank->opening_barrier(Deadline::never(), never_fails);
        then(*rank);
        for (;;) ::pause();
    }
    OtherRank(const OtherRank&) = delete;
    OtherRank& operator=(const OtherRank&) = delete;
    ~OtherRank() { kill(); }

    [[nodiscard]] pid_t pid() const { return pid_; }
    void kill() {
        if (!std::exchange(is_running_, false)) return;
        ::kill(pid_, SIGKILL);
        ::waitpid(pid_, nullptr, 0);
    }
    [[nodiscard]] std::string name() const { return "rank 1 (pid " + std::to_string(pid_) + " on host here)"; }

private:
    pid_t pid_;
    bool is_running_ = true;
};

TEST_F(SharedMemoryRanks, AKilledRankIsReportedByCheckAndByTheNextCollective) {
    OtherRank other([this](int rank) { return attach(rank); }, [](Bootstrap&) {});
    const auto survivor = attach(0);
    ASSERT_TRUE(survivor->opening_barrier(Deadline::never(), never_fails).ok());
    EXPECT_TRUE(survivor->check().ok());
    other.kill();
    const Status found = survivor->check();
    EXPECT_EQ(found.code(), Code::peer_dead);
    EXPECT_THAT(found.message(), HasSubstr("the process of " + other.name()));
    EXPECT_EQ(survivor->barrier().message(), found.message()) << "the first failure stays";
}

// It may have ended after it was counted in, or before.
TEST_F(SharedMemoryRanks, ARankThatIsKilledInsideACollectiveIsReportedByCheck) {
    OtherRank other([this](int rank) { return attach(rank); }, [](Bootstrap& rank) { (void)rank.barrier(); });
    const auto survivor = attach(0);
    ASSERT_TRUE(survivor->opening_barrier(Deadline::never(), never_fails).ok());
    other.kill();
    EXPECT_THAT(survivor->check().message(), HasSubstr("the process of " + other.name()));
    EXPECT_EQ(survivor->barrier().code(), Code::peer_dead);
}

// A rank checks some processes at a time. Rank 35 is far from rank 0, which waits alone, and remains as a zombie.
TEST(SharedMemoryOfManyRanks, ARankThatWaitsAloneFindsAProcessThatNobodyHasReaped) {
    constexpr int ranks = 40;
    constexpr int ended = 35;
    const SharedSegment memory = SharedMemoryBootstrap::create_memory(ranks).value();
    const auto attach = [&](int rank) {
        auto attached = SharedSegment::attach(memory.handle());
        return std::move(SharedMemoryBootstrap::open(std::move(attached).value(), Identity{rank, ::getpid(), "here"},
                                                     ranks, std::chrono::seconds(60)))
            .value();
    };
    const pid_t child = ::fork();
    if (child == 0) {
        const auto rank = attach(ended);
        (void)rank->opening_barrier(Deadline::never(), never_fails);
        ::_exit(0);
    }
    std::vector<std::unique_ptr<SharedMemoryBootstrap>> others;
    std::vector<std::thread> threads;
    for (int rank = 0; rank < ranks; ++rank)
        if (rank != ended) others.push_back(attach(rank));
    for (const auto& rank : others)
        threads.emplace_back([&rank] { EXPECT_TRUE(rank->opening_barrier(Deadline::never(), never_fails).ok()); });
    for (std::thread& thread : threads) thread.join();
    siginfo_t info{};
    ASSERT_EQ(::waitid(P_PID, static_cast<id_t>(child), &info, WEXITED | WNOWAIT), 0);
    const Status found = others.front()->barrier();
    EXPECT_EQ(found.code(), Code::peer_dead);
    EXPECT_THAT(found.message(), HasSubstr("the process of rank 35 (pid " + std::to_string(child) + " on host here)"));
    ::waitpid(child, nullptr, 0);
}

TEST_F(SharedMemoryRanks, MemoryOfAnotherJobIsRejected) {
    for (const int other : {1, 3, 100000}) {
        auto memory = SharedSegment::attach(memory_.handle());
        ASSERT_TRUE(memory.ok());
        const auto opened = SharedMemoryBootstrap::open(std::move(memory).value(), Identity{0, ::getpid(), "here"},
                                                        other, Milliseconds(0));
        EXPECT_EQ(opened.status().code(), Code::protocol) << other;
        EXPECT_THAT(opened.status().message(), HasSubstr("that is not that of " + std::to_string(other) + " ranks"));
    }
}

TEST_F(SharedMemoryRanks, AnAllgatherChecksTheSizeOfItsResult) {
    const auto rank = attach(0);
    std::vector<std::byte> result(15);
    const Status wrong = rank->allgather(std::vector<std::byte>(8), result);
    EXPECT_EQ(wrong.code(), Code::argument);
    EXPECT_THAT(wrong.message(), HasSubstr("needs 16 bytes to receive, not 15"));
}

}  // namespace
}  // namespace npushmem::rendezvous
