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

#include "core/base/host_facts.hpp"

namespace npushmem::rendezvous {
namespace {

using ::testing::AllOf;
using ::testing::HasSubstr;

npushmem_host_id here() { return host_identity(-1).value(); }

// Ranks that the test drives itself.
class SharedMemoryRanks : public ::testing::Test {
protected:
    std::unique_ptr<SharedMemoryBootstrap> attach(int rank, Milliseconds timeout = std::chrono::seconds(60)) {
        auto memory = JobMemory::attach(memory_.handle(), ranks, here());
        EXPECT_TRUE(memory.ok()) << memory.status().message();
        auto opened =
            SharedMemoryBootstrap::open(std::move(memory).value(), Identity{rank, ::getpid(), "here"}, timeout);
        EXPECT_TRUE(opened.ok()) << opened.status().message();
        return std::move(opened).value();
    }

    static constexpr int ranks = 2;
    JobMemory memory_ = JobMemory::create(ranks, here()).value();
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
    const JobMemory memory = JobMemory::create(ranks, here()).value();
    auto attached = JobMemory::attach(memory.handle(), ranks, here());
    const auto without_service =
        SharedMemoryBootstrap::open(std::move(attached).value(), Identity{0, ::getpid(), "here"}, {});
    EXPECT_EQ(without_service.value()->opening_barrier(Deadline::after(Milliseconds(1))).message(),
              "rank 1 of 2 never joined within 1 ms");
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
    const JobMemory memory = JobMemory::create(ranks, here()).value();
    const auto attach = [&](int rank) {
        auto attached = JobMemory::attach(memory.handle(), ranks, here());
        return std::move(SharedMemoryBootstrap::open(std::move(attached).value(), Identity{rank, ::getpid(), "here"},
                                                     std::chrono::seconds(60)))
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

TEST_F(SharedMemoryRanks, ARankAttachesOnce) {
    const auto first = attach(1);
    auto again = JobMemory::attach(memory_.handle(), ranks, here());
    ASSERT_TRUE(again.ok()) << again.status().message();
    const auto opened = SharedMemoryBootstrap::open(std::move(again).value(), Identity{1, ::getpid(), "here"}, {});
    EXPECT_EQ(opened.status().code(), Code::state);
    EXPECT_THAT(opened.status().message(), HasSubstr("rank 1 (pid "));
}

TEST_F(SharedMemoryRanks, TheOpeningBarrierEndsWhenTheMemoryIsRefused) {
    const auto first = attach(0);
    Status outcome;
    std::thread waiting([&] { outcome = first->opening_barrier(Deadline::never()); });
    memory_.refuse(1);
    waiting.join();
    EXPECT_FALSE(outcome.ok());
    EXPECT_TRUE(first->is_refused());
    const auto last = attach(1);
    EXPECT_FALSE(last->opening_barrier(Deadline::never()).ok()) << "though all have come";
    EXPECT_TRUE(memory_.failure().ok()) << "a refusal is no failure of the job";
}

TEST_F(SharedMemoryRanks, TheOpeningBarrierFindsARankThatIsKilledInIt) {
    const JobMemory memory = JobMemory::create(3, here()).value();
    const auto join = [&memory](int rank) {
        auto attached = JobMemory::attach(memory.handle(), 3, here());
        auto opened = SharedMemoryBootstrap::open(std::move(attached).value(), Identity{rank, ::getpid(), "here"}, {});
        return std::move(opened).value();
    };
    OtherRank other(join, [](Bootstrap&) {});
    while (memory.state_of(1).entered.load(std::memory_order_acquire) == 0) std::this_thread::yield();
    other.kill();
    const Status found = join(0)->opening_barrier(Deadline::never());
    EXPECT_EQ(found.code(), Code::peer_dead);
    EXPECT_THAT(found.message(), AllOf(HasSubstr("the process of " + other.name()), HasSubstr("job was starting")));
    EXPECT_EQ(join(2)->opening_barrier(Deadline::never()).message(), found.message()) << "which comes later";
}

TEST_F(SharedMemoryRanks, TheOpeningBarrierEndsWithTheProcessThatMadeTheMemory) {
    int ends[2];
    ASSERT_EQ(::pipe(ends), 0);
    const pid_t creator = ::fork();
    if (creator == 0) {
        const JobMemory memory = JobMemory::create(ranks, here()).value();
        const SegmentHandle handle = memory.handle();
        (void)!::write(ends[1], &handle, sizeof handle);
        for (;;) ::pause();
    }
    SegmentHandle handle;
    ASSERT_EQ(::read(ends[0], &handle, sizeof handle), static_cast<ssize_t>(sizeof handle));
    auto attached = JobMemory::attach(handle, ranks, here());
    ASSERT_TRUE(attached.ok()) << attached.status().message();
    const auto rank = SharedMemoryBootstrap::open(std::move(attached).value(), Identity{0, ::getpid(), "here"}, {});
    ::kill(creator, SIGKILL);
    ::waitpid(creator, nullptr, 0);
    const Status ended = rank.value()->opening_barrier(Deadline::never());
    EXPECT_EQ(ended.code(), Code::peer_dead);
    EXPECT_THAT(ended.message(), HasSubstr("made the unique id (pid " + std::to_string(creator)));
    ::close(ends[0]);
    ::close(ends[1]);
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
