// SPDX-License-Identifier: BSD-3-Clause
// A rank that aborts, and a rank that exits silently: no rank waits without end, and all get the reason.
#include <gtest/gtest.h>

#include <chrono>
#include <set>
#include <thread>

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

void abort_wakes_everyone(const BootstrapSubject& subject, int leaving_rank, bool in_allgather) {
    auto opened = subject.open();
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

void abort_wakes_who_waits_in_a_barrier(const BootstrapSubject& subject) {
    for (const int leaving_rank : leaving_ranks(*subject.expected_ranks))
        abort_wakes_everyone(subject, leaving_rank, false);
}

void abort_wakes_who_waits_in_an_allgather(const BootstrapSubject& subject) {
    for (const int leaving_rank : leaving_ranks(*subject.expected_ranks))
        abort_wakes_everyone(subject, leaving_rank, true);
}

void check_reports_an_abort(const BootstrapSubject& subject) {
    auto opened = subject.open();
    ASSERT_TRUE(opened.ok()) << opened.status().message();
    Bootstrap& job = *opened.value();
    const Status status = job.barrier();
    if (job.rank() == job.nranks() - 1) return job.abort(reason);
    if (!status.ok()) return expect_cause(status);
    expect_cause(await_failure(job));
}

void all_may_abort_at_once(const BootstrapSubject& subject) {
    auto opened = subject.open();
    ASSERT_TRUE(opened.ok()) << opened.status().message();
    const Status status = opened.value()->barrier();
    opened.value()->abort(reason);
    // Another rank's abort may arrive while this rank is leaving the barrier.
    if (!status.ok()) {
        expect_cause(status);
    }
}

void who_leaves_early_is_missed(const BootstrapSubject& subject) {
    for (const int leaving_rank : leaving_ranks(*subject.expected_ranks)) {
        auto opened = subject.open();
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
    return {{"abort_wakes_who_waits_in_a_barrier", 2, abort_wakes_who_waits_in_a_barrier},
            {"abort_wakes_who_waits_in_an_allgather", 2, abort_wakes_who_waits_in_an_allgather},
            {"check_reports_an_abort", 2, check_reports_an_abort},
            {"all_may_abort_at_once", 1, all_may_abort_at_once},
            {"who_leaves_early_is_missed", 2, who_leaves_early_is_missed}};
}

}  // namespace npushmem::contract
