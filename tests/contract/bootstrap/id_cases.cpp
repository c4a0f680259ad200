// SPDX-License-Identifier: BSD-3-Clause
// Ids of jobs, and the numbers of ranks that the user gives.
#include <gtest/gtest.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cstddef>
#include <cstdint>
#include <span>
#include <string>
#include <vector>

#include "tests/contract/bootstrap/bootstrap_case.hpp"

namespace npushmem::contract {
namespace {

// Of cases that can only end by a failure.
constexpr const char* wrong_id_timeout = "1s";

constexpr const char* makes_no_ids = "the bootstrap makes no ids";

// The ids beside that of the own job.
constexpr int first_extra_id = 1;
constexpr int second_extra_id = 2;

void makes_ids_that_differ(Rank& rank) {
    std::array<JobId, 4> ids{};
    for (auto& id : ids) {
        const Status made = rank.make_id(id);
        if (made.code() == Code::unsupported) GTEST_SKIP() << makes_no_ids;
        ASSERT_TRUE(made.ok()) << made.message();
    }
    std::sort(ids.begin(), ids.end());
    EXPECT_EQ(std::adjacent_find(ids.begin(), ids.end()), ids.end()) << "two ids are equal";
}

void ids_of_garbage_are_rejected(Rank& rank) {
    rank.set("BOOTSTRAP_TIMEOUT", wrong_id_timeout);
    if (rank.id().status().code() == Code::unsupported) GTEST_SKIP() << makes_no_ids;
    JobId garbage{};
    std::uint32_t state = 12345;
    for (auto& byte : garbage) byte = static_cast<std::byte>((state = state * 1664525U + 1013904223U) >> 24U);
    JobId ones{};
    ones.fill(std::byte{0xff});
    for (const JobId& id : {garbage, ones, JobId{}}) {
        const auto opened = rank.open_as(rank.number(), rank.nranks(), &id);
        EXPECT_FALSE(opened.ok()) << "an id that no get_uniqueid has made led to a job";
        EXPECT_FALSE(opened.status().message().empty()) << "a failure without a cause";
    }
}

// A process of its own makes the id and ends.
Status id_of_dead_process(Rank& rank, JobId& id) {
    std::array<int, 2> ends{};
    if (::pipe2(ends.data(), 0) != 0) return {Code::system, "no pipe"};
    const pid_t maker = ::fork();
    if (maker == 0) {
        const Status made = rank.make_id(id);
        if (made.ok()) (void)!::write(ends[1], id.data(), id.size());
        ::_exit(made.code() == Code::unsupported ? 1 : 0);
    }
    ::close(ends[1]);
    const auto got = ::read(ends[0], id.data(), id.size());
    ::close(ends[0]);
    int status = 0;
    if (maker < 0 || ::waitpid(maker, &status, 0) != maker) return {Code::system, "no process could make the id"};
    if (WIFEXITED(status) && WEXITSTATUS(status) == 1) return {Code::unsupported, makes_no_ids};
    if (got != static_cast<ssize_t>(id.size())) return {Code::system, "the maker's get_uniqueid failed"};
    return {};
}

// The header demands that the maker stays alive, so the job may fail; without the maker's help it may also succeed.
void an_id_whose_maker_has_gone_fails_or_serves(Rank& rank) {
    rank.set("BOOTSTRAP_TIMEOUT", wrong_id_timeout);
    if (rank.number() == 0) {
        JobId id{};
        const Status made = id_of_dead_process(rank, id);
        rank.shared().publish_id(first_extra_id, made, id);
    }
    const auto id = rank.shared().await_id(first_extra_id, 0);
    if (id.status().code() == Code::unsupported) GTEST_SKIP() << makes_no_ids;
    ASSERT_TRUE(id.ok()) << id.status().message();
    auto opened = rank.open_as(rank.number(), rank.nranks(), &id.value());
    if (opened.ok()) {
        const Status status = opened.value()->barrier();
        // Another rank may have got no further than open in the short time-out.
        EXPECT_TRUE(status.ok() || reports_missing_rank(status.code())) << status.message();
    } else if (opened.status().code() != Code::unreachable) {
        expect_missing_rank_reported(opened.status(), "open");
    }
}

void exchange_in_own_job(Bootstrap& job, int mark) {
    std::vector<int> all(static_cast<std::size_t>(job.nranks()));
    for (int round = 0; round < 100; ++round) {
        const int mine = mark + job.rank() * 1000 + round;
        const Status gathered =
            job.allgather(std::as_bytes(std::span(&mine, 1)), std::as_writable_bytes(std::span(all)));
        ASSERT_TRUE(gathered.ok()) << gathered.message();
        for (int other = 0; other < job.nranks(); ++other)
            ASSERT_EQ(all[static_cast<std::size_t>(other)], mark + other * 1000 + round) << "from another job";
        const Status met = job.barrier();
        ASSERT_TRUE(met.ok()) << met.message();
    }
}

// The even and the odd ranks are two jobs. Rank 0 makes both ids. Each rank stays in its job until open has returned on
// all ranks: so the jobs exist at once, and the maker of the ids is alive.
void two_jobs_at_once_do_not_mix(Rank& rank) {
    if (rank.number() == 0)
        for (const int number : {first_extra_id, second_extra_id}) {
            JobId id{};
            const Status made = rank.make_id(id);
            rank.shared().publish_id(number, made, id);
        }
    const bool odd = rank.number() % 2 == 1;
    const auto id = rank.shared().await_id(odd ? second_extra_id : first_extra_id, 0);
    if (id.status().code() == Code::unsupported) GTEST_SKIP() << makes_no_ids;
    ASSERT_TRUE(id.ok()) << id.status().message();
    const int job_ranks = odd ? rank.nranks() / 2 : (rank.nranks() + 1) / 2;
    rank.set("PE", std::to_string(rank.number() / 2));
    rank.set("NPES", std::to_string(job_ranks));
    auto opened = rank.open_as(rank.number() / 2, job_ranks, &id.value());
    rank.shared().reach(rank.number(), 1);
    ASSERT_TRUE(opened.ok()) << opened.status().message();
    for (int other = 0; other < rank.nranks(); ++other) rank.shared().await(other, 1);
    EXPECT_EQ(opened.value()->rank(), rank.number() / 2);
    EXPECT_EQ(opened.value()->nranks(), job_ranks);
    exchange_in_own_job(*opened.value(), odd ? 1000000 : 0);
}

void expect_refused(Rank& rank, int number, int nranks) {
    const auto made = rank.id();
    ASSERT_TRUE(made.ok() || made.status().code() == Code::unsupported) << made.status().message();
    rank.set("PE", std::to_string(number));
    rank.set("NPES", std::to_string(nranks));
    const auto opened = rank.open_as(number, nranks, made.ok() ? &made.value() : nullptr);
    EXPECT_FALSE(opened.ok()) << "rank " << number << " of " << nranks << " was accepted";
    EXPECT_FALSE(opened.status().message().empty()) << "rank " << number << " of " << nranks << ": no cause";
}

void ranks_outside_the_job_are_refused(Rank& rank) {
    rank.set("BOOTSTRAP_TIMEOUT", wrong_id_timeout);
    for (const int outside : {rank.nranks(), rank.nranks() + rank.number(), 1 << 30})
        expect_refused(rank, outside, rank.nranks());
}

void a_job_of_no_ranks_is_refused(Rank& rank) {
    rank.set("BOOTSTRAP_TIMEOUT", wrong_id_timeout);
    expect_refused(rank, rank.number(), 0);
}

// The number before the last one is given twice, and the last one is missing.
void one_number_given_to_two_ranks_fails_everywhere(Rank& rank) {
    rank.set("BOOTSTRAP_TIMEOUT", wrong_id_timeout);
    expect_refused(rank, std::min(rank.number(), rank.nranks() - 2), rank.nranks());
}

void ranks_that_disagree_about_their_number_fail_everywhere(Rank& rank) {
    rank.set("BOOTSTRAP_TIMEOUT", wrong_id_timeout);
    const bool last = rank.number() == rank.nranks() - 1;
    expect_refused(rank, rank.number(), rank.nranks() + (last ? 1 : 0));
}

}  // namespace

std::vector<BootstrapCase> bootstrap_id_cases() {
    using enum CaseRanks;
    return {{"makes_ids_that_differ", 1, few_ranks, any, makes_ids_that_differ},
            {"ids_of_garbage_are_rejected", 2, few_ranks, needs_own_ranks, ids_of_garbage_are_rejected},
            {"an_id_whose_maker_has_gone_fails_or_serves", 2, few_ranks, needs_own_ranks,
             an_id_whose_maker_has_gone_fails_or_serves},
            {"two_jobs_at_once_do_not_mix", 3, many_ranks, needs_own_ranks, two_jobs_at_once_do_not_mix},
            {"ranks_outside_the_job_are_refused", 1, few_ranks, needs_own_ranks, ranks_outside_the_job_are_refused},
            {"a_job_of_no_ranks_is_refused", 1, few_ranks, needs_own_ranks, a_job_of_no_ranks_is_refused},
            {"one_number_given_to_two_ranks_fails_everywhere", 2, few_ranks, needs_own_ranks,
             one_number_given_to_two_ranks_fails_everywhere},
            {"ranks_that_disagree_about_their_number_fail_everywhere", 2, few_ranks, needs_own_ranks,
             ranks_that_disagree_about_their_number_fail_everywhere}};
}

}  // namespace npushmem::contract
