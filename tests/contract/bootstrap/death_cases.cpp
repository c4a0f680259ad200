// SPDX-License-Identifier: BSD-3-Clause
// A rank whose process is killed: the current or next call of every other rank fails, and no call waits without end.
#include <gtest/gtest.h>

#include <chrono>
#include <cstddef>
#include <span>
#include <thread>
#include <vector>

#include "tests/contract/bootstrap/bootstrap_case.hpp"

namespace npushmem::contract {
namespace {

// The stage of a rank that is about to make the call in which the case waits for it.
constexpr int calling = 1;

// Time-outs of cases that can only end by a failure: their length affects the run time, and no result.
constexpr const char* short_open_timeout = "1s";
constexpr const char* short_call_timeout = "3s";

enum class Victim { first, middle, last };

template <Victim victim>
int number_of(const Rank& rank) {
    if (victim == Victim::first) return 0;
    return victim == Victim::last ? rank.nranks() - 1 : (rank.nranks() - 1) / 2;
}

// Waits until all other ranks have reached the stage or ended.
void await_others(Rank& rank, int stage) {
    for (int other = 0; other < rank.nranks(); ++other)
        if (other != rank.number()) rank.shared().await(other, stage);
}

// Rank 0 makes the job's id before a case kills it.
void make_id_of_job(Rank& rank) {
    const auto id = rank.id();
    ASSERT_TRUE(id.ok() || id.status().code() == Code::unsupported) << id.status().message();
}

template <Victim victim>
void a_rank_dies_before_open(Rank& rank) {
    rank.set("BOOTSTRAP_TIMEOUT", short_open_timeout);
    make_id_of_job(rank);
    if (rank.number() == number_of<victim>(rank)) die(rank);
    expect_missing_rank_reported(rank.open().status(), "open");
}

// The rank that completes the job comes only after the other ranks wait in open and one of them was killed.
template <Victim victim>
void a_rank_dies_inside_open(Rank& rank) {
    const int dead = number_of<victim>(rank);
    const int completing = dead == 0 ? rank.nranks() - 1 : 0;
    rank.set("BOOTSTRAP_TIMEOUT", short_open_timeout);
    make_id_of_job(rank);
    if (rank.number() == completing) {
        await_others(rank, calling);
        rank.await_sleep_of(dead);
        rank.kill(dead);
    }
    rank.shared().reach(rank.number(), calling);
    const Status status = rank.open().status();
    expect_missing_rank_reported(status, "open");
    if (rank.number() == dead && !::testing::Test::HasFailure()) rank.await_kill();
}

enum class Call { barrier, allgather };

Status make_call(Bootstrap& job, Call call) {
    if (call == Call::barrier) return job.barrier();
    std::vector<std::byte> all(100000 * static_cast<std::size_t>(job.nranks()));
    return job.allgather(std::span(all).first(100000), all);
}

// One rank enters the call only after another one, which waits in it, was killed. What the dead rank sent before may
// complete this call, but not the next one.
template <Victim victim, Call call>
void a_rank_dies_inside_a_call(Rank& rank) {
    const int dead = number_of<victim>(rank);
    const int completing = dead == 0 ? rank.nranks() - 1 : 0;
    rank.set("BOOTSTRAP_COLLECTIVE_TIMEOUT", short_call_timeout);
    auto opened = rank.open();
    ASSERT_TRUE(opened.ok()) << opened.status().message();
    Bootstrap& job = *opened.value();
    if (rank.number() == completing) {
        await_others(rank, calling);  // so that none of them is still in open
        rank.await_sleep_of(dead);
        rank.kill(dead);
    }
    rank.shared().reach(rank.number(), calling);
    Status status = make_call(job, call);
    if (rank.number() == dead) {
        ASSERT_FALSE(status.ok()) << "the call succeeded without rank " << completing;
        rank.await_kill();
    }
    if (status.ok()) status = make_call(job, call);
    expect_missing_rank_reported(status, "the second call");
    EXPECT_FALSE(job.barrier().ok()) << "a job that has failed stays failed";
}

template <Victim victim>
void a_rank_dies_between_calls(Rank& rank) {
    const int dead = number_of<victim>(rank);
    rank.set("BOOTSTRAP_COLLECTIVE_TIMEOUT", short_call_timeout);
    auto opened = rank.open();
    ASSERT_TRUE(opened.ok()) << opened.status().message();
    rank.shared().reach(rank.number(), calling);
    await_others(rank, calling);  // so that none of them is still in open
    if (rank.number() == dead) die(rank);
    rank.shared().await_end(dead);
    expect_missing_rank_reported(opened.value()->barrier(), "a barrier without the dead rank");
}

void check_reports_a_dead_rank(Rank& rank) {
    const int dead = rank.nranks() - 1;
    auto opened = rank.open();
    ASSERT_TRUE(opened.ok()) << opened.status().message();
    rank.shared().reach(rank.number(), calling);
    await_others(rank, calling);  // so that none of them is still in open
    if (rank.number() == dead) die(rank);
    rank.shared().await_end(dead);
    Status seen;
    const auto until = std::chrono::steady_clock::now() + std::chrono::seconds(20);
    while (seen.ok() && std::chrono::steady_clock::now() < until) {
        std::this_thread::sleep_for(std::chrono::milliseconds(1));
        seen = opened.value()->check();
    }
    expect_missing_rank_reported(seen, "check");
}

// The others may still be in the call that was the dead rank's last one: it completes or reports the death. Some close
// while the rank may live, and some after it has gone.
template <Victim victim, Call call>
void a_rank_dies_after_its_last_call(Rank& rank) {
    const int dead = number_of<victim>(rank);
    auto opened = rank.open();
    ASSERT_TRUE(opened.ok()) << opened.status().message();
    const Status status = make_call(*opened.value(), call);
    if (rank.number() == dead) {
        EXPECT_TRUE(status.ok()) << status.message();
        die(rank);
    }
    if (!status.ok()) expect_missing_rank_reported(status, "the last call");
    if (rank.number() % 2 == 0) rank.shared().await_end(dead);
    opened.value().reset();
}

}  // namespace

std::vector<BootstrapCase> bootstrap_death_cases() {
    using enum CaseRanks;
    using enum Victim;
    using enum Call;
    return {
        {"rank_0_dies_before_open", 2, few_ranks, needs_own_ranks, a_rank_dies_before_open<first>},
        {"the_last_rank_dies_before_open", 2, few_ranks, needs_own_ranks, a_rank_dies_before_open<last>},
        {"rank_0_dies_inside_open", 2, few_ranks, needs_own_ranks, a_rank_dies_inside_open<first>},
        {"the_last_rank_dies_inside_open", 2, few_ranks, needs_own_ranks, a_rank_dies_inside_open<last>},
        {"rank_0_dies_in_a_barrier", 2, few_ranks, needs_own_ranks, a_rank_dies_inside_a_call<first, barrier>},
        {"a_middle_rank_dies_in_a_barrier", 3, few_ranks, needs_own_ranks, a_rank_dies_inside_a_call<middle, barrier>},
        {"the_last_rank_dies_in_a_barrier", 2, many_ranks, needs_own_ranks, a_rank_dies_inside_a_call<last, barrier>},
        {"rank_0_dies_in_an_allgather", 2, few_ranks, needs_own_ranks, a_rank_dies_inside_a_call<first, allgather>},
        {"a_middle_rank_dies_in_an_allgather", 3, few_ranks, needs_own_ranks,
         a_rank_dies_inside_a_call<middle, allgather>},
        {"the_last_rank_dies_in_an_allgather", 2, few_ranks, needs_own_ranks,
         a_rank_dies_inside_a_call<last, allgather>},
        {"rank_0_dies_between_calls", 2, few_ranks, needs_own_ranks, a_rank_dies_between_calls<first>},
        {"the_last_rank_dies_between_calls", 2, few_ranks, needs_own_ranks, a_rank_dies_between_calls<last>},
        {"check_reports_a_dead_rank", 2, few_ranks, needs_own_ranks, check_reports_a_dead_rank},
        {"rank_0_dies_after_its_last_barrier", 2, few_ranks, needs_own_ranks,
         a_rank_dies_after_its_last_call<first, barrier>},
        {"the_last_rank_dies_after_its_last_barrier", 2, few_ranks, needs_own_ranks,
         a_rank_dies_after_its_last_call<last, barrier>},
        {"rank_0_dies_after_its_last_allgather", 2, few_ranks, needs_own_ranks,
         a_rank_dies_after_its_last_call<first, allgather>},
    };
}

}  // namespace npushmem::contract
