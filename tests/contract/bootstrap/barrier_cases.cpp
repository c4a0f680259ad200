// SPDX-License-Identifier: BSD-3-Clause
// Barrier: no rank leaves before all have entered.
#include <fcntl.h>
#include <gtest/gtest.h>
#include <sys/mman.h>
#include <unistd.h>

#include <array>
#include <atomic>
#include <cerrno>
#include <cstdint>
#include <cstring>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include "npushmem/plugin/bootstrap.hpp"
#include "tests/contract/bootstrap/bootstrap_case.hpp"

namespace npushmem::contract {

// One counter per rank in memory that all ranks of one host share, set up through the job under test itself. The
// counters show which rank had arrived at what time, for which the bootstrap has no query.
class SharedCounters {
public:
    // Collective. The file is unlinked on return.
    static Result<SharedCounters> make(Bootstrap& job) {
        Name mine{};
        int file = -1;
        if (job.rank() == 0) {
            std::string name = "/dev/shm/test-contract-XXXXXX";
            file = ::mkstemp(name.data());
            if (file < 0 || ::ftruncate(file, bytes_of(job)) != 0) return failure("make", name);
            name.copy(mine.data(), mine.size() - 1);
        }
        std::vector<Name> all(static_cast<std::size_t>(job.nranks()));
        Status gathered = job.allgather(std::as_bytes(std::span(mine)), std::as_writable_bytes(std::span(all)));
        if (!gathered.ok()) return gathered;
        if (job.rank() != 0) file = ::open(all[0].data(), O_RDWR | O_CLOEXEC);
        if (file < 0) return failure("open", all[0].data());
        void* const mapping = ::mmap(nullptr, bytes_of(job), PROT_READ | PROT_WRITE, MAP_SHARED, file, 0);
        ::close(file);
        Status status = job.barrier();
        if (job.rank() == 0) ::unlink(mine.data());
        if (mapping == MAP_FAILED) return failure("map", all[0].data());
        SharedCounters made(mapping, bytes_of(job));
        return status.ok() ? Result<SharedCounters>(std::move(made)) : Result<SharedCounters>(status);
    }
    SharedCounters(SharedCounters&& other) noexcept
        : mapping_(std::exchange(other.mapping_, nullptr)), bytes_(other.bytes_) {}
    SharedCounters(const SharedCounters&) = delete;
    SharedCounters& operator=(const SharedCounters&) = delete;
    ~SharedCounters() {
        if (mapping_ != nullptr) ::munmap(mapping_, static_cast<std::size_t>(bytes_));
    }

    // Sequentially consistent, all of them: the test checks the order of the counters' changes.
    [[nodiscard]] std::atomic_ref<std::uint64_t> of(int rank) const {
        return std::atomic_ref(static_cast<std::uint64_t*>(mapping_)[rank]);
    }

private:
    using Name = std::array<char, 64>;

    SharedCounters(void* mapping, off_t bytes) : mapping_(mapping), bytes_(bytes) {}
    static off_t bytes_of(const Bootstrap& job) { return static_cast<off_t>(sizeof(std::uint64_t)) * job.nranks(); }
    static Status failure(const char* what, const std::string& name) {
        return {Code::system, std::string("cannot ") + what + " " + name + ": " + std::strerror(errno)};
    }

    void* mapping_;
    off_t bytes_;
};

namespace {

// Each rank counts its entries. After the k-th barrier all ranks have entered k times, and none more than k + 1 times,
// because the next barrier needs this rank too.
void check_round(Bootstrap& job, const SharedCounters& entered, std::uint64_t round) {
    entered.of(job.rank()).fetch_add(1);
    const Status status = job.barrier();
    ASSERT_TRUE(status.ok()) << status.message();
    for (int rank = 0; rank < job.nranks(); ++rank) {
        const std::uint64_t there = entered.of(rank).load();
        EXPECT_GE(there, round) << "rank " << rank << " had not entered when rank " << job.rank() << " left";
        EXPECT_LE(there, round + 1) << "rank " << rank << " passed a barrier without rank " << job.rank();
    }
}

void nobody_leaves_before_all_have_entered(Rank& rank) {
    auto opened = rank.open();
    ASSERT_TRUE(opened.ok()) << opened.status().message();
    auto entered = SharedCounters::make(*opened.value());
    ASSERT_TRUE(entered.ok()) << entered.status().message();
    for (std::uint64_t round = 1; round <= 50 && !::testing::Test::HasFailure(); ++round)
        check_round(*opened.value(), entered.value(), round);
}

void barriers_and_gathers_mix(Rank& rank) {
    auto opened = rank.open();
    ASSERT_TRUE(opened.ok()) << opened.status().message();
    Bootstrap& job = *opened.value();
    std::vector<int> ranks(static_cast<std::size_t>(job.nranks()));
    for (int round = 0; round < 30; ++round) {
        ASSERT_TRUE(job.barrier().ok());
        const int mine = job.rank() + round;
        const Status gathered =
            job.allgather(std::as_bytes(std::span(&mine, 1)), std::as_writable_bytes(std::span(ranks)));
        ASSERT_TRUE(gathered.ok()) << gathered.message();
        for (int other = 0; other < job.nranks(); ++other)
            EXPECT_EQ(ranks[static_cast<std::size_t>(other)], other + round);
    }
}

void a_thousand_rounds_succeed(Rank& rank) {
    auto opened = rank.open();
    ASSERT_TRUE(opened.ok()) << opened.status().message();
    Bootstrap& job = *opened.value();
    std::vector<int> all(static_cast<std::size_t>(job.nranks()));
    for (int round = 0; round < 1000; ++round) {
        const Status met = job.barrier();
        ASSERT_TRUE(met.ok()) << "round " << round << ": " << met.message();
        const int mine = job.rank() * 1000 + round;
        const Status gathered =
            job.allgather(std::as_bytes(std::span(&mine, 1)), std::as_writable_bytes(std::span(all)));
        ASSERT_TRUE(gathered.ok()) << "round " << round << ": " << gathered.message();
        for (int other = 0; other < job.nranks(); ++other)
            ASSERT_EQ(all[static_cast<std::size_t>(other)], other * 1000 + round);
    }
}

}  // namespace

std::vector<BootstrapCase> bootstrap_barrier_cases() {
    using enum CaseRanks;
    return {{"nobody_leaves_before_all_have_entered", 1, many_ranks, any, nobody_leaves_before_all_have_entered},
            {"barriers_and_gathers_mix", 1, many_ranks, any, barriers_and_gathers_mix},
            {"a_thousand_rounds_succeed", 1, few_ranks, any, a_thousand_rounds_succeed}};
}

}  // namespace npushmem::contract
