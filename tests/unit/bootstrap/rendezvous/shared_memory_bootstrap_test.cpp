// SPDX-License-Identifier: BSD-3-Clause
// What tests of whole jobs (tests/unit/bootstrap/uid) do not reach.
#include "bootstrap/rendezvous/shared_memory_bootstrap.hpp"

#include <gmock/gmock.h>
#include <sys/wait.h>
#include <unistd.h>

#include <csignal>
#include <thread>

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
        return std::make_unique<SharedMemoryBootstrap>(std::move(memory).value(), Identity{rank, ::getpid(), "here"},
                                                       ranks, timeout);
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
    EXPECT_THAT(late.message(), AllOf(HasSubstr("rank 0 (pid "), HasSubstr("for rank 1"), HasSubstr("barrier #0")));
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

// Rank 1 is a process that attaches, passes the first barrier and waits to be killed.
TEST_F(SharedMemoryRanks, AKilledRankIsReportedByCheckAndByTheNextCollective) {
    const pid_t child = ::fork();
    if (child == 0) {
        (void)attach(1)->opening_barrier(Deadline::never(), never_fails);
        for (;;) ::pause();
    }
    const auto survivor = attach(0);
    ASSERT_TRUE(survivor->opening_barrier(Deadline::never(), never_fails).ok());
    EXPECT_TRUE(survivor->check().ok());
    ::kill(child, SIGKILL);
    ::waitpid(child, nullptr, 0);
    const Status found = survivor->check();
    EXPECT_EQ(found.code(), Code::peer_dead);
    EXPECT_THAT(found.message(), HasSubstr("the process of rank 1 (pid " + std::to_string(child) + " on host here)"));
    EXPECT_EQ(survivor->barrier().message(), found.message()) << "the first failure stays";
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
