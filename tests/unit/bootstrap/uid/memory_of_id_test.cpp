// SPDX-License-Identifier: BSD-3-Clause
// Jobs whose unique id contains memory: their ranks attach to it, or, as soon as one of them cannot, join the service.
#include <gmock/gmock.h>

#include "bootstrap/rendezvous/job_memory.hpp"
#include "core/base/host_facts.hpp"
#include "core/base/socket.hpp"
#include "tests/fakes/open_descriptors.hpp"
#include "tests/unit/bootstrap/uid/thread_job.hpp"

namespace npushmem::uid {
namespace {

using ::testing::Each;
using ::testing::HasSubstr;

constexpr int ranks_of_job = 3;

ThreadJob::Variables of_ranks(int number) { return {{"NPES", std::to_string(number)}}; }

// Ranks 0 and 1 with the variables of the job, rank 2 with others.
std::vector<Outcome> run_with_another(const ThreadJob& job, const ThreadJob::Variables& of_rank_2) {
    std::vector<Outcome> outcomes;
    std::thread first([&] { outcomes = job.run({0, 1}, ranks_of_job, one_barrier); });
    const Outcome last = ThreadJob(job.bytes(), of_rank_2).run_rank(2, ranks_of_job, one_barrier);
    first.join();
    outcomes.push_back(last);
    return outcomes;
}

JobMemory memory_of(const ThreadJob& job) {
    return JobMemory::attach(job.id().memory, ranks_of_job, host_identity(-1).value()).value();
}

// An address where nobody listens.
Address closed_port() { return Socket::listen(Address::parse("127.0.0.1", 0).value()).value().local_address(); }

TEST(MemoryOfId, TheRanksDoNotNeedTheService) {
    ThreadJob job(of_ranks(ranks_of_job));
    UniqueId id = job.id();
    ASSERT_TRUE(id.memory.given());
    id.service = closed_port();
    job.use(id);
    const JobMemory memory = memory_of(job);
    EXPECT_THAT(job.run(ranks_of_job, one_barrier), Each(Succeeded()));
    EXPECT_EQ(memory.state(), JobMemory::State::complete);
}

TEST(MemoryOfId, ExistsOnlyWhereAllRanksAreOfThisHostAndCounted) {
    EXPECT_FALSE(ThreadJob().id().memory.given());
    EXPECT_FALSE(ThreadJob(of_ranks(1)).id().memory.given());
    EXPECT_FALSE(ThreadJob(ThreadJob::Variables{{"NPES", "many"}}).id().memory.given());
    EXPECT_FALSE(ThreadJob(ThreadJob::Variables{{"NPES", "3"}, {"BOOTSTRAP_SHARED_MEMORY", "0"}}).id().memory.given());
    const ThreadJob elsewhere(ThreadJob::Variables{{"NPES", "3"}, {"BOOTSTRAP_UID_SOCK_IFNAME", "^lo"}});
    EXPECT_FALSE(elsewhere.made().ok() && elsewhere.id().memory.given());
}

TEST(MemoryOfId, ARankThatUsesTcpSendsAllToTheService) {
    const ThreadJob job(of_ranks(ranks_of_job));
    const JobMemory memory = memory_of(job);
    EXPECT_THAT(run_with_another(job, {{"BOOTSTRAP_SHARED_MEMORY", "0"}}), Each(Succeeded()));
    EXPECT_EQ(memory.state(), JobMemory::State::refused);
}

TEST(MemoryOfId, ARankOfAnotherHostSendsAllToTheService) {
    const ThreadJob job(of_ranks(ranks_of_job));
    const JobMemory memory = memory_of(job);
    EXPECT_THAT(run_with_another(job, {{"EMULATED_HOST", "1"}}), Each(Succeeded()));
    EXPECT_EQ(memory.state(), JobMemory::State::refused);
}

TEST(MemoryOfId, MemoryOfAnotherVersionIsNotUsed) {
    const ThreadJob job(of_ranks(ranks_of_job));
    const JobMemory memory = memory_of(job);
    memory.header().version = {99, 0, 0};
    EXPECT_THAT(job.run(ranks_of_job, one_barrier), Each(Succeeded()));
    EXPECT_EQ(memory.state(), JobMemory::State::refused);
}

TEST(MemoryOfId, ADescriptorThatIsSomethingElseIsNotUsed) {
    ThreadJob job(of_ranks(ranks_of_job));
    UniqueId id = job.id();
    ++id.memory.inode;
    job.use(id);
    EXPECT_THAT(job.run(ranks_of_job, one_barrier), Each(Succeeded()));
}

TEST(MemoryOfId, ALateRankLearnsWhyTheOthersGaveUp) {
    auto variables = of_ranks(ranks_of_job);
    variables["BOOTSTRAP_TIMEOUT"] = "100ms";
    const ThreadJob job(variables);
    for (const Outcome& each : job.run({0, 1}, ranks_of_job, one_barrier)) {
        EXPECT_EQ(each.code(), Code::timeout);
        EXPECT_THAT(each.message(), HasSubstr(" of 3 never joined within 100 ms"));
    }
    EXPECT_THAT(job.run_rank(2, ranks_of_job, one_barrier).message(), HasSubstr(" of 3 never joined within 100 ms"));
    const ThreadJob patient(job.bytes(), of_ranks(ranks_of_job));
    EXPECT_THAT(patient.run(ranks_of_job, one_barrier), Each(Succeeded())) << "the next start is by the service";
}

TEST(MemoryOfId, ALateRankThatUsesTcpLearnsItToo) {
    auto variables = of_ranks(ranks_of_job);
    variables["BOOTSTRAP_TIMEOUT"] = "100ms";
    const ThreadJob job(variables);
    (void)job.run({0, 1}, ranks_of_job, one_barrier);
    const ThreadJob late(job.bytes(), {{"BOOTSTRAP_SHARED_MEMORY", "0"}});
    EXPECT_THAT(late.run_rank(2, ranks_of_job, one_barrier).message(), HasSubstr("of 3 never joined within 100 ms"));
    EXPECT_THAT(late.run(ranks_of_job, one_barrier), Each(Succeeded())) << "the next start";
}

// The thread of the service drops the memory when it has time.
TEST(MemoryOfId, IsDroppedWhenItServesNoRankAnyMore) {
    constexpr std::size_t ids = 40;
    const std::size_t before = open_descriptors();
    for (std::size_t i = 0; i < ids; ++i) {
        const ThreadJob job(of_ranks(2));
        ASSERT_TRUE(job.id().memory.given());
        EXPECT_THAT(job.run(2, one_barrier), Each(Succeeded()));
    }
    while (open_descriptors() > before + ids / 2) std::this_thread::yield();
}

TEST(MemoryOfId, AJobOfAnotherSizeUsesTheService) {
    const ThreadJob job(of_ranks(ranks_of_job));
    const JobMemory memory = memory_of(job);
    EXPECT_THAT(job.run(2, one_barrier), Each(Succeeded()));
    EXPECT_THAT(job.run(ranks_of_job, one_barrier), Each(Succeeded()));
    EXPECT_EQ(memory.state(), JobMemory::State::refused);
}

}  // namespace
}  // namespace npushmem::uid
