// A rank that gives up, and one that goes without a word: nobody waits for it for ever, and all learn why.
#include <gtest/gtest.h>

#include <chrono>
#include <set>
#include <thread>

#include "tests/contract/bootstrap/bootstrap_case.hpp"

namespace npushmem::contract {
namespace {

constexpr const char* reason = "the moon is in the wrong house (42)";

std::set<int> quitters(int nranks) { return {0, nranks / 2, nranks - 1}; }

// Asks until it hears of a failure: check() may not wait itself.
Status await_failure(Bootstrap& job) {
    const auto until = std::chrono::steady_clock::now() + std::chrono::seconds(20);
    for (;;) {
        if (Status seen = job.check(); !seen.ok()) return seen;
        if (std::chrono::steady_clock::now() > until) return {};
        std::this_thread::sleep_for(std::chrono::milliseconds(1));
    }
}

void expect_cause(const Status& told) {
    ASSERT_FALSE(told.ok());
    EXPECT_EQ(told.code(), Code::aborted) << told.message();
    EXPECT_NE(told.message().find(reason), std::string::npos) << "the cause is missing in: " << told.message();
}

void abort_wakes_everyone(const BootstrapSubject& subject, int quitter, bool in_allgather) {
    auto opened = subject.open();
    ASSERT_TRUE(opened.ok()) << opened.status().message();
    Bootstrap& job = *opened.value();
    if (job.rank() == quitter) {
        ASSERT_TRUE(job.barrier().ok());
        return job.abort(reason);
    }
    std::vector<std::byte> all(100000 * static_cast<std::size_t>(job.nranks()));
    // The abort may overtake the first barrier's end.
    Status told = job.barrier();
    if (told.ok()) told = in_allgather ? job.allgather(std::span(all).first(100000), all) : job.barrier();
    expect_cause(told);
    expect_cause(job.barrier());
    expect_cause(job.check());
}

void abort_wakes_who_waits_in_a_barrier(const BootstrapSubject& subject) {
    for (const int quitter : quitters(*subject.expected_ranks)) abort_wakes_everyone(subject, quitter, false);
}

void abort_wakes_who_waits_in_an_allgather(const BootstrapSubject& subject) {
    for (const int quitter : quitters(*subject.expected_ranks)) abort_wakes_everyone(subject, quitter, true);
}

void check_hears_of_an_abort(const BootstrapSubject& subject) {
    auto opened = subject.open();
    ASSERT_TRUE(opened.ok()) << opened.status().message();
    Bootstrap& job = *opened.value();
    const Status met = job.barrier();
    if (job.rank() == job.nranks() - 1) return job.abort(reason);
    if (!met.ok()) return expect_cause(met);
    expect_cause(await_failure(job));
}

void all_may_abort_at_once(const BootstrapSubject& subject) {
    auto opened = subject.open();
    ASSERT_TRUE(opened.ok()) << opened.status().message();
    const Status met = opened.value()->barrier();
    opened.value()->abort(reason);
    // Another rank's abort may come while this one is still on its way out of the barrier.
    if (!met.ok()) {
        expect_cause(met);
    }
}

void who_leaves_early_is_missed(const BootstrapSubject& subject) {
    for (const int quitter : quitters(*subject.expected_ranks)) {
        auto opened = subject.open();
        ASSERT_TRUE(opened.ok()) << opened.status().message();
        Bootstrap& job = *opened.value();
        // Another rank may have missed the quitter, and said so, before this one is out of the first barrier.
        Status met = job.barrier();
        if (job.rank() == quitter) continue;
        if (met.ok()) met = job.barrier();
        EXPECT_FALSE(met.ok()) << "rank " << quitter << " was not there";
        EXPECT_FALSE(met.message().empty());
    }
}

}  // namespace

std::vector<BootstrapCase> bootstrap_failure_cases() {
    return {{"abort_wakes_who_waits_in_a_barrier", 2, abort_wakes_who_waits_in_a_barrier},
            {"abort_wakes_who_waits_in_an_allgather", 2, abort_wakes_who_waits_in_an_allgather},
            {"check_hears_of_an_abort", 2, check_hears_of_an_abort},
            {"all_may_abort_at_once", 1, all_may_abort_at_once},
            {"who_leaves_early_is_missed", 2, who_leaves_early_is_missed}};
}

}  // namespace npushmem::contract
