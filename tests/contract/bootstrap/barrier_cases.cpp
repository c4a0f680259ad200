// Barrier: nobody leaves before all have entered.
#include <gtest/gtest.h>

#include "tests/contract/bootstrap/bootstrap_case.hpp"
#include "tests/contract/bootstrap/shared_counters.hpp"

namespace npushmem::contract {
namespace {

// Each rank counts how often it has entered. After the k-th barrier all have entered k times, and nobody more than once
// further: the next barrier needs this rank too.
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

void nobody_leaves_before_all_have_entered(const BootstrapSubject& subject) {
    auto opened = subject.open();
    ASSERT_TRUE(opened.ok()) << opened.status().message();
    auto entered = SharedCounters::make(*opened.value());
    ASSERT_TRUE(entered.ok()) << entered.status().message();
    for (std::uint64_t round = 1; round <= 50 && !::testing::Test::HasFailure(); ++round)
        check_round(*opened.value(), entered.value(), round);
}

void barriers_and_gathers_mix(const BootstrapSubject& subject) {
    auto opened = subject.open();
    ASSERT_TRUE(opened.ok()) << opened.status().message();
    Bootstrap& job = *opened.value();
    std::vector<int> ranks(static_cast<std::size_t>(job.nranks()));
    for (int round = 0; round < 30; ++round) {
        ASSERT_TRUE(job.barrier().ok());
        const int mine = job.rank() + round;
        const Status gathered =
            job.allgather(std::as_bytes(std::span(&mine, 1)), std::as_writable_bytes(std::span(ranks)));
        ASSERT_TRUE(gathered.ok()) << gathered.message();
        for (int rank = 0; rank < job.nranks(); ++rank) EXPECT_EQ(ranks[static_cast<std::size_t>(rank)], rank + round);
    }
}

}  // namespace

std::vector<BootstrapCase> bootstrap_barrier_cases() {
    return {{"nobody_leaves_before_all_have_entered", 1, nobody_leaves_before_all_have_entered},
            {"barriers_and_gathers_mix", 1, barriers_and_gathers_mix}};
}

}  // namespace npushmem::contract
