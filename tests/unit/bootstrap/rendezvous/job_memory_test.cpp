// SPDX-License-Identifier: BSD-3-Clause
#include "bootstrap/rendezvous/job_memory.hpp"

#include <gmock/gmock.h>
#include <sys/wait.h>
#include <unistd.h>

#include "core/base/host_facts.hpp"

namespace npushmem::rendezvous {
namespace {

using ::testing::HasSubstr;

class JobMemoryTest : public ::testing::Test {
protected:
    npushmem_host_id here_ = host_identity(-1).value();
    JobMemory memory_ = JobMemory::create(3, here_).value();
};

TEST_F(JobMemoryTest, IsTheSameForEveryRank) {
    SegmentHandle handle = memory_.handle();
    handle.bytes = 0;  // a unique id does not contain it
    auto attached = JobMemory::attach(handle, 3, here_);
    ASSERT_TRUE(attached.ok()) << attached.status().message();
    EXPECT_TRUE(attached.value().claim(1));
    EXPECT_FALSE(memory_.claim(1)) << "it is taken";
    EXPECT_TRUE(memory_.claim(2));
    memory_.buffer(1).back() = std::byte{7};
    EXPECT_EQ(attached.value().buffer(1).back(), std::byte{7});
}

TEST_F(JobMemoryTest, BuffersDoNotOverlap) {
    for (const std::uint32_t number : {0U, 1U})
        std::ranges::fill(memory_.buffer(number), static_cast<std::byte>(10 + number));
    for (const std::uint32_t number : {0U, 1U}) {
        const auto buffer = memory_.buffer(number);
        EXPECT_EQ(buffer.size(), 3 * JobMemory::piece_bytes(3));
        EXPECT_EQ(std::ranges::count(buffer, static_cast<std::byte>(10 + number)), std::ssize(buffer));
    }
    EXPECT_EQ(memory_.nranks(), 3);
    EXPECT_FALSE(memory_.state_of(2).claimed.load());
}

TEST_F(JobMemoryTest, BelongsToOneNumberOfRanksOneHostAndOneVersion) {
    EXPECT_EQ(JobMemory::attach(memory_.handle(), 2, here_).status().code(), Code::mismatch);
    EXPECT_FALSE(JobMemory::attach(memory_.handle(), 100000, here_).ok()) << "it is shorter";
    npushmem_host_id elsewhere = here_;
    elsewhere.emulated = 1;
    EXPECT_EQ(JobMemory::attach(memory_.handle(), 3, elsewhere).status().code(), Code::mismatch);
    npushmem_host_id of_another_user = here_;
    ++of_another_user.user;
    EXPECT_EQ(JobMemory::attach(memory_.handle(), 3, of_another_user).status().code(), Code::mismatch);
    memory_.header().version = {99, 0, 0};
    const auto newer = JobMemory::attach(memory_.handle(), 3, here_);
    EXPECT_EQ(newer.status().code(), Code::mismatch);
    EXPECT_THAT(newer.status().message(), HasSubstr("99.0.0"));
    memory_.header().magic = 1;
    EXPECT_EQ(JobMemory::attach(memory_.handle(), 3, here_).status().code(), Code::protocol);
}

TEST_F(JobMemoryTest, IsCompleteOrRefused) {
    EXPECT_EQ(memory_.state(), JobMemory::State::forming);
    EXPECT_TRUE(memory_.complete());
    memory_.refuse(0);
    EXPECT_EQ(memory_.state(), JobMemory::State::complete);
    JobMemory refused = JobMemory::create(2, here_).value();
    refused.refuse(0);
    EXPECT_FALSE(refused.complete());
    EXPECT_EQ(refused.state(), JobMemory::State::refused);
}

TEST_F(JobMemoryTest, KeepsTheFirstFailure) {
    EXPECT_TRUE(memory_.failure().ok());
    EXPECT_EQ(memory_.fail(1, {Code::timeout, "first"}).message(), "first");
    EXPECT_EQ(memory_.fail(2, {Code::aborted, "second"}).message(), "first");
    EXPECT_EQ(memory_.failure().code(), Code::timeout);
}

TEST_F(JobMemoryTest, FailsForTheEndOfARankWhileItIsForming) {
    memory_.rank_ended(3, "PE 3 ended");
    memory_.rank_ended(-1, "PE -1 ended");
    EXPECT_TRUE(memory_.failure().ok()) << memory_.failure().message();
    memory_.rank_ended(2, "PE 2 ended");
    EXPECT_THAT(memory_.failure().message(), HasSubstr("PE 2 ended without calling npushmem_init"));
    EXPECT_EQ(memory_.state(), JobMemory::State::failed);
    JobMemory entered = JobMemory::create(2, here_).value();
    entered.state_of(0).entered.store(1);
    entered.rank_ended(0, "PE 0 ended");
    EXPECT_EQ(entered.failure().message(), "PE 0 ended while the job was starting");
    JobMemory complete = JobMemory::create(1, here_).value();
    ASSERT_TRUE(complete.complete());
    complete.rank_ended(0, "PE 0 ended");
    EXPECT_TRUE(complete.failure().ok()) << "its job has started";
}

TEST_F(JobMemoryTest, IsNotRefusedByTheNextProcessOfARankThatHasEnded) {
    const pid_t first = ::fork();
    if (first == 0) {
        (void)memory_.claim(1);
        memory_.state_of(1).entered.store(1);
        ::_exit(0);
    }
    ASSERT_EQ(::waitpid(first, nullptr, 0), first);
    memory_.refuse(1);
    EXPECT_EQ(memory_.state(), JobMemory::State::failed);
    EXPECT_THAT(memory_.failure().message(), HasSubstr("rank 1 (pid " + std::to_string(first) + ") ended"));
}

TEST_F(JobMemoryTest, KeepsNoFailureOfARefusedStart) {
    memory_.refuse(0);
    EXPECT_EQ(memory_.fail(1, {Code::timeout, "late"}).message(), "late") << "for the caller";
    EXPECT_TRUE(memory_.failure().ok());
}

// The state in which the failure is when its writer is killed: its number is there, the text is not.
TEST_F(JobMemoryTest, AWriterThatIsKilledBlocksNobody) {
    const pid_t writer = ::fork();
    if (writer == 0) {
        (void)memory_.claim(1);
        memory_.header().failed.store(0);
        std::uint32_t first_rank = 4;
        memory_.header().failed.store(first_rank + 1);
        ::_exit(0);
    }
    ASSERT_EQ(::waitpid(writer, nullptr, 0), writer);
    EXPECT_EQ(memory_.failure().code(), Code::peer_dead);
    EXPECT_THAT(memory_.failure().message(), HasSubstr("before it reported why"));
}

}  // namespace
}  // namespace npushmem::rendezvous
