// SPDX-License-Identifier: BSD-3-Clause
// Ranks as real processes, one of which is killed.
#include <fcntl.h>
#include <fmt/format.h>
#include <gmock/gmock.h>
#include <sys/wait.h>
#include <unistd.h>

#include <array>
#include <csignal>

#include "bootstrap/rendezvous/job_memory.hpp"
#include "core/base/host_facts.hpp"
#include "core/base/socket.hpp"
#include "tests/unit/bootstrap/uid/thread_job.hpp"

namespace npushmem::uid {
namespace {

using ::testing::AllOf;
using ::testing::Each;
using ::testing::HasSubstr;

constexpr int ranks = 8;

std::pair<FileDescriptor, FileDescriptor> make_pipe() {
    std::array<int, 2> ends{};
    EXPECT_EQ(::pipe2(ends.data(), O_CLOEXEC), 0);
    return {FileDescriptor(ends[0]), FileDescriptor(ends[1])};
}

// A child process, which waits for the job's id, and the pipe on which it says what became of it. Made before the test
// has threads: a fork beside them can leave the child with a lock, of the allocator for one, that nobody will release.
class RankProcess {
public:
    RankProcess(int rank, const ThreadJob::Variables& variables, const ThreadJob::Body& body) {
        auto [id_reading, id_writing] = make_pipe();
        auto [reading, writing] = make_pipe();
        pid_ = ::fork();
        if (pid_ != 0) {
            id_writing_ = std::move(id_writing);
            reading_ = std::move(reading);
            return;
        }
        UniqueIdBytes id{};
        const bool received = ::read(id_reading.get(), id.data(), id.size()) == static_cast<ssize_t>(id.size());
        const std::string message =
            received ? ThreadJob(id, variables).run_rank(rank, ranks, body).message() : "received no id";
        (void)!::write(writing.get(), message.data(), message.size());
        ::_exit(0);
    }
    RankProcess(RankProcess&&) = delete;
    ~RankProcess() {
        if (!waited_) {
            ::kill(pid_, SIGKILL);
            wait();
        }
    }

    [[nodiscard]] pid_t pid() const { return pid_; }
    void send_id(const UniqueIdBytes& id) const {
        EXPECT_EQ(::write(id_writing_.get(), id.data(), id.size()), static_cast<ssize_t>(id.size()));
    }
    // Returns its message after it has ended.
    std::string message() {
        std::array<char, 4096> text{};
        std::string all;
        for (ssize_t got = 1; got > 0; all.append(text.data(), static_cast<std::size_t>(std::max<ssize_t>(got, 0))))
            got = ::read(reading_.get(), text.data(), text.size());
        wait();
        return all;
    }

private:
    void wait() {
        ::waitpid(pid_, nullptr, 0);
        waited_ = true;
    }

    pid_t pid_ = -1;
    bool waited_ = false;
    FileDescriptor id_writing_;
    FileDescriptor reading_;
};

class ProcessDeath : public ExchangeTest {
protected:
    // Runs `body` in each of 8 processes and returns the messages of all but the victim.
    std::vector<std::string> messages_of_survivors(const ThreadJob::Body& body) {
        for (int rank = 0; rank < ranks; ++rank)
            processes_.push_back(std::make_unique<RankProcess>(rank, exchange(ranks), body));
        const ThreadJob job(exchange(ranks));
        for (const auto& process : processes_) process->send_id(job.bytes());
        std::vector<std::string> messages;
        for (int rank = 0; rank < ranks; ++rank) {
            const std::string message = processes_[static_cast<std::size_t>(rank)]->message();
            if (rank != victim_rank()) messages.push_back(message);
        }
        return messages;
    }

    [[nodiscard]] std::string victim() const {
        return fmt::format("rank {} (pid {} on host ", victim_rank(),
                           processes_[static_cast<std::size_t>(victim_rank())]->pid());
    }

    static int victim_rank() { return std::get<0>(GetParam()); }
    static const char* end() { return shares_memory() ? "ended " : "closed its connection "; }

    std::vector<std::unique_ptr<RankProcess>> processes_;
};

INSTANTIATE_TEST_SUITE_P(Victims, ProcessDeath, all_exchanges(ThreadJob::all_ranks(ranks)), exchange_name);

TEST_P(ProcessDeath, IsReportedToEverySurvivorInACollective) {
    const auto messages = messages_of_survivors([](Bootstrap& job) {
        if (Status all = job.barrier(); !all.ok()) return all;
        if (job.rank() == victim_rank()) ::raise(SIGKILL);
        return job.barrier();
    });
    // The victim's neighbours may still be in the first barrier when they see it die.
    EXPECT_THAT(messages, Each(AllOf(HasSubstr(victim()), HasSubstr(end() + std::string("during barrier #")))));
}

// As in a script that starts one program after another in each PE.
TEST(ProcessDeathInMemory, TheNextProgramOfAKilledRankIsAnotherStart) {
    const ThreadJob::Variables variables{{"NPES", std::to_string(ranks)}};
    RankProcess first(1, variables, one_barrier);
    const ThreadJob job(variables);
    first.send_id(job.bytes());
    {
        const JobMemory memory = JobMemory::attach(job.id().memory, ranks, host_identity(-1).value()).value();
        while (memory.state_of(1).entered.load(std::memory_order_acquire) == 0) std::this_thread::yield();
    }
    Status of_rank_0;
    std::thread waiting([&] { of_rank_0 = job.run_rank(0, ranks, one_barrier); });
    ::kill(first.pid(), SIGKILL);
    (void)first.message();
    Status of_next;
    std::thread next([&] { of_next = job.run_rank(1, ranks, one_barrier); });
    waiting.join();
    EXPECT_EQ(of_rank_0.code(), Code::peer_dead);
    EXPECT_THAT(of_rank_0.message(),
                AllOf(HasSubstr(fmt::format("rank 1 (pid {}", first.pid())), HasSubstr("while the job was starting")));
    for (const Status& late : job.run({2, 3, 4, 5, 6, 7}, ranks, one_barrier))
        EXPECT_EQ(late.message(), of_rank_0.message()) << "which were to start with the killed one";
    EXPECT_THAT(job.run({0, 2, 3, 4, 5, 6, 7}, ranks, one_barrier), Each(Succeeded()));
    next.join();
    EXPECT_THAT(of_next, Succeeded());
}

TEST_P(ProcessDeath, IsReportedByCheck) {
    const auto messages = messages_of_survivors([](Bootstrap& job) {
        Status seen = job.barrier();
        if (job.rank() == victim_rank()) ::raise(SIGKILL);
        while (seen.ok()) seen = job.check();
        return seen;
    });
    EXPECT_THAT(messages, Each(AllOf(HasSubstr(victim()), HasSubstr(end()))));
}

}  // namespace
}  // namespace npushmem::uid
