// SPDX-License-Identifier: BSD-3-Clause
// Joining and leaving.
#include <gtest/gtest.h>

#include <chrono>
#include <filesystem>
#include <ostream>
#include <span>
#include <thread>
#include <vector>

#include "tests/contract/bootstrap/bootstrap_case.hpp"

namespace npushmem::contract {

// Resources of a process that a plugin could leak.
struct ProcessFacts {
    long descriptors;
    long threads;

    static ProcessFacts now() { return {entries("/proc/self/fd"), entries("/proc/self/task")}; }
    // Not more of either.
    friend bool operator<=(const ProcessFacts& a, const ProcessFacts& b) {
        return a.descriptors <= b.descriptors && a.threads <= b.threads;
    }
    friend std::ostream& operator<<(std::ostream& out, const ProcessFacts& facts) {
        return out << facts.descriptors << " descriptors, " << facts.threads << " threads";
    }

private:
    static long entries(const char* folder) {
        const std::filesystem::directory_iterator all(folder);
        return std::distance(begin(all), end(all));
    }
};

namespace {

void ranks_are_numbered(Rank& rank) {
    auto opened = rank.open();
    ASSERT_TRUE(opened.ok()) << opened.status().message();
    Bootstrap& job = *opened.value();
    EXPECT_EQ(job.nranks(), rank.nranks());
    ASSERT_GE(job.rank(), 0);
    ASSERT_LT(job.rank(), job.nranks());
    std::vector<int> ranks(static_cast<std::size_t>(job.nranks()), -1);
    const int mine = job.rank();
    ASSERT_TRUE(job.allgather(std::as_bytes(std::span(&mine, 1)), std::as_writable_bytes(std::span(ranks))).ok());
    for (int other = 0; other < job.nranks(); ++other) EXPECT_EQ(ranks[static_cast<std::size_t>(other)], other);
}

void the_numbers_of_own_ranks_are_used(Rank& rank) {
    auto opened = rank.open();
    ASSERT_TRUE(opened.ok()) << opened.status().message();
    EXPECT_EQ(opened.value()->rank(), rank.number());
    EXPECT_EQ(opened.value()->nranks(), rank.nranks());
}

// The ranks before the late one are probably all waiting in open when it comes.
void one_rank_comes_late(Rank& rank, int late) {
    constexpr int opening = 1;
    const auto id = rank.id();  // also of a late rank 0, which makes it
    ASSERT_TRUE(id.ok() || id.status().code() == Code::unsupported) << id.status().message();
    for (int other = 0; other < rank.nranks() && rank.number() == late; ++other)
        if (other != late && rank.shared().await(other, opening)) rank.await_sleep_of(other);
    rank.shared().reach(rank.number(), opening);
    auto opened = rank.open();
    ASSERT_TRUE(opened.ok()) << opened.status().message();
    const Status status = opened.value()->barrier();
    EXPECT_TRUE(status.ok()) << status.message();
}

void the_last_rank_comes_late(Rank& rank) { one_rank_comes_late(rank, rank.nranks() - 1); }
void rank_0_comes_late(Rank& rank) { one_rank_comes_late(rank, 0); }

// A rank that leaves the last barrier exits at once; this must not disturb ranks that are still in it.
void joins_and_leaves_repeatedly(Rank& rank) {
    for (int round = 0; round < 10; ++round) {
        auto opened = rank.open();
        ASSERT_TRUE(opened.ok()) << "round " << round << ": " << opened.status().message();
        const Status status = opened.value()->barrier();
        ASSERT_TRUE(status.ok()) << "round " << round << ": " << status.message();
    }
}

void joins_and_leaves_without_a_call(Rank& rank) {
    for (int round = 0; round < 5; ++round) {
        auto opened = rank.open();
        ASSERT_TRUE(opened.ok()) << "round " << round << ": " << opened.status().message();
    }
}

// Services for other ranks may outlive a session for a moment, until they see that those ranks have left.
void expect_return_to(const ProcessFacts& before) {
    const auto until = std::chrono::steady_clock::now() + std::chrono::seconds(20);
    while (!(ProcessFacts::now() <= before) && std::chrono::steady_clock::now() < until)
        std::this_thread::sleep_for(std::chrono::milliseconds(5));
    EXPECT_LE(ProcessFacts::now(), before);
}

// Every rank does the same, so leaks of successive starts would add up.
void leaves_nothing_behind(Rank& rank) {
    const auto once = [&](bool fail) {
        auto opened = rank.open();
        ASSERT_TRUE(opened.ok()) << opened.status().message();
        const Status status = opened.value()->barrier();
        if (fail) opened.value()->abort("this start is given up");
        ASSERT_TRUE(status.ok() || fail) << status.message();
    };
    once(false);  // allocates resources that a process makes once and keeps
    const ProcessFacts before = ProcessFacts::now();
    for (const bool fail : {false, true, false, true, false}) once(fail);
    expect_return_to(before);
}

}  // namespace

std::vector<BootstrapCase> bootstrap_life_cases() {
    using enum CaseRanks;
    return {{"ranks_are_numbered", 1, many_ranks, any, ranks_are_numbered},
            {"the_numbers_of_own_ranks_are_used", 1, many_ranks, needs_own_ranks, the_numbers_of_own_ranks_are_used},
            {"joins_and_leaves_repeatedly", 1, few_ranks, any, joins_and_leaves_repeatedly},
            {"joins_and_leaves_without_a_call", 1, few_ranks, any, joins_and_leaves_without_a_call},
            {"the_last_rank_comes_late", 2, few_ranks, needs_own_ranks, the_last_rank_comes_late},
            {"rank_0_comes_late", 2, few_ranks, needs_own_ranks, rank_0_comes_late},
            {"leaves_nothing_behind", 1, few_ranks, any, leaves_nothing_behind}};
}

}  // namespace npushmem::contract
