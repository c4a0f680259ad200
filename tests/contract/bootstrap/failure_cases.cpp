// SPDX-License-Identifier: BSD-3-Clause
// A rank that aborts, and a rank that leaves silently: no rank waits without end, and all get the reason.
#include <gtest/gtest.h>

#include <chrono>
#include <cstddef>
#include <set>
#include <span>
#include <string>
#include <thread>
#include <vector>

#include "tests/contract/bootstrap/bootstrap_case.hpp"

namespace npushmem::contract {
namespace {

constexpr const char* reason = "the moon is in the wrong house (42)";

std::set<int> leaving_ranks(int nranks) { return {0, nranks / 2, nranks - 1}; }

// Polls until a failure is reported: check() itself must not wait.
Status await_failure(Bootstrap& job) {
    const auto until = std::chrono::steady_clock::now() + std::chrono::seconds(20);
    for (;;) {
        if (Status seen = job.check(); !seen.ok()) return seen;
        if (std::chrono::steady_clock::now() > until) return {};
        std::this_thread::sleep_for(std::chrono::milliseconds(1));
    }
}

void expect_cause(const Status& status) {
    ASSERT_FALSE(status.ok());
    EXPECT_EQ(status.code(), Code::aborted) << status.message();
    EXPECT_NE(status.message().find(reason), std::string::npos) << "the cause is missing in: " << status.message();
}

void abort_wakes_everyone(Rank& rank, int leaving_rank, bool in_allgather) {
    auto opened = rank.open();
    ASSERT_TRUE(opened.ok()) << opened.status().message();
    Bootstrap& job = *opened.value();
    if (job.rank() == leaving_rank) {
        ASSERT_TRUE(job.barrier().ok());
        return job.abort(reason);
    }
    std::vector<std::byte> all(100000 * static_cast<std::size_t>(job.nranks()));
    // The abort may arrive before the end of the first barrier.
    Status status = job.barrier();
    if (status.ok()) status = in_allgather ? job.allgather(std::span(all).first(100000), all) : job.barrier();
    expect_cause(status);
    expect_cause(job.barrier());
    expect_cause(job.check());
}

void abort_wakes_who_waits_in_a_barrier(Rank& rank) {
    for (const int leaving_rank : leaving_ranks(rank.nranks())) abort_wakes_everyone(rank, leaving_rank, false);
}

void abort_wakes_who_waits_in_an_allgather(Rank& rank) {
    for (const int leaving_rank : leaving_ranks(rank.nranks())) abort_wakes_everyone(rank, leaving_rank, true);
}

void check_reports_an_abort(Rank& rank) {
    auto opened = rank.open();
    ASSERT_TRUE(opened.ok()) << opened.status().message();
    Bootstrap& job = *opened.value();
    const Status status = job.barrier();
    if (job.rank() == job.nranks() - 1) return job.abort(reason);
    if (!status.ok()) return expect_cause(status);
    expect_cause(await_failure(job));
}

void all_may_abort_at_once(Rank& rank) {
    auto opened = rank.open();
    ASSERT_TRUE(opened.ok()) << opened.status().message();
    const Status status = opened.value()->barrier();
    opened.value()->abort(reason);
    // Another rank's abort may arrive while this rank is leaving the barrier.
    if (!status.ok()) {
        expect_cause(status);
    }
}

// The message may be shortened, but the beginning of the reason must arrive.
void expect_abort_with(Rank& rank, const std::string& sent, const std::string& arrives) {
    auto opened = rank.open();
    ASSERT_TRUE(opened.ok()) << opened.status().message();
    Bootstrap& job = *opened.value();
    Status status = job.barrier();
    if (job.rank() == job.nranks() - 1) return job.abort(sent);
    if (status.ok()) status = job.barrier();
    EXPECT_EQ(status.code(), Code::aborted) << status.message();
    EXPECT_FALSE(status.message().empty());
    EXPECT_NE(status.message().find(arrives), std::string::npos) << "the cause is missing in: " << status.message();
}

void a_very_long_reason_arrives_in_part_or_whole(Rank& rank) {
    std::string text;
    for (int word = 0; text.size() < 1000000; ++word) text += "cause " + std::to_string(word) + ", ";
    expect_abort_with(rank, text, text.substr(0, 200));
}

void an_abort_without_a_reason_arrives(Rank& rank) { expect_abort_with(rank, "", ""); }

void calls_after_an_abort_fail(Rank& rank) {
    auto opened = rank.open();
    ASSERT_TRUE(opened.ok()) << opened.status().message();
    Bootstrap& job = *opened.value();
    (void)job.barrier();  // another rank's abort may arrive before its end
    job.abort(reason);
    std::vector<std::byte> all(static_cast<std::size_t>(job.nranks()));
    for (int times = 0; times < 2; ++times) {
        EXPECT_FALSE(job.barrier().ok()) << "a barrier after abort";
        EXPECT_FALSE(job.allgather(std::span(all).first(1), all).ok()) << "an allgather after abort";
        EXPECT_FALSE(job.check().ok()) << "a check after abort";
        job.abort("and again");
    }
}

// The other ranks make no call until one rank has checked very often: a check that waited for them would never return,
// and one that waited for a time-out would exceed the deadline.
void check_never_blocks(Rank& rank) {
    auto opened = rank.open();
    ASSERT_TRUE(opened.ok()) << opened.status().message();
    Bootstrap& job = *opened.value();
    for (const int checking : {0, job.nranks() - 1}) {
        const Status status = job.barrier();
        ASSERT_TRUE(status.ok()) << status.message();
        for (int times = 0; times < 5000 && job.rank() == checking; ++times) {
            const Status checked = job.check();
            ASSERT_TRUE(checked.ok()) << "no rank has failed: " << checked.message();
        }
        if (job.rank() == checking) rank.shared().reach(job.rank(), 1);
        ASSERT_TRUE(rank.shared().await(checking, 1)) << "rank " << checking << " ended";
    }
    const Status status = job.barrier();
    EXPECT_TRUE(status.ok()) << status.message();
}

void who_leaves_early_is_missed(Rank& rank) {
    for (const int leaving_rank : leaving_ranks(rank.nranks())) {
        auto opened = rank.open();
        ASSERT_TRUE(opened.ok()) << opened.status().message();
        Bootstrap& job = *opened.value();
        // Another rank may have reported the missing rank before this one is out of the first barrier.
        Status status = job.barrier();
        if (job.rank() == leaving_rank) continue;
        if (status.ok()) status = job.barrier();
        EXPECT_FALSE(status.ok()) << "rank " << leaving_rank << " was not there";
        EXPECT_FALSE(status.message().empty());
    }
}

}  // namespace

std::vector<BootstrapCase> bootstrap_failure_cases() {
    using enum CaseRanks;
    return {
        {"abort_wakes_who_waits_in_a_barrier", 2, many_ranks, any, abort_wakes_who_waits_in_a_barrier},
        {"abort_wakes_who_waits_in_an_allgather", 2, few_ranks, any, abort_wakes_who_waits_in_an_allgather},
        {"check_reports_an_abort", 2, many_ranks, any, check_reports_an_abort},
        {"all_may_abort_at_once", 1, few_ranks, any, all_may_abort_at_once},
        {"a_very_long_reason_arrives_in_part_or_whole", 2, few_ranks, any, a_very_long_reason_arrives_in_part_or_whole},
        {"an_abort_without_a_reason_arrives", 2, few_ranks, any, an_abort_without_a_reason_arrives},
        {"calls_after_an_abort_fail", 1, few_ranks, any, calls_after_an_abort_fail},
        {"check_never_blocks", 1, few_ranks, needs_own_ranks, check_never_blocks},
        {"who_leaves_early_is_missed", 2, many_ranks, any, who_leaves_early_is_missed}};
}

}  // namespace npushmem::contract
