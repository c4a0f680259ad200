// SPDX-License-Identifier: BSD-3-Clause
// Allgather: every size, every rank's bytes in their place, repeatedly.
#include <gtest/gtest.h>

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <span>
#include <utility>
#include <vector>

#include "tests/contract/bootstrap/bootstrap_case.hpp"

namespace npushmem::contract {
namespace {

using Buffer = std::vector<std::byte>;

// Bytes differ by rank, round and position, so that any misplaced byte is detected.
Buffer pattern_of(int rank, std::size_t round, std::size_t bytes) {
    Buffer out(bytes);
    std::uint32_t state = static_cast<std::uint32_t>(rank) * 2654435761U + static_cast<std::uint32_t>(round) + 1U;
    for (auto& byte : out) {
        state = state * 1664525U + 1013904223U;
        byte = static_cast<std::byte>(state >> 24U);
    }
    return out;
}

void expect_all(const Buffer& received, int nranks, std::size_t round, std::size_t bytes) {
    for (int rank = 0; rank < nranks; ++rank) {
        const auto begin = received.begin() + static_cast<std::ptrdiff_t>(static_cast<std::size_t>(rank) * bytes);
        const Buffer wanted = pattern_of(rank, round, bytes);
        EXPECT_TRUE(std::equal(wanted.begin(), wanted.end(), begin))
            << "rank " << rank << "'s part of " << bytes << " bytes in round " << round << " is wrong";
    }
}

void gather_once(Bootstrap& job, std::size_t round, std::size_t bytes) {
    Buffer received(bytes * static_cast<std::size_t>(job.nranks()), std::byte{0xee});
    const Status gathered = job.allgather(pattern_of(job.rank(), round, bytes), received);
    ASSERT_TRUE(gathered.ok()) << bytes << " bytes, round " << round << ": " << gathered.message();
    expect_all(received, job.nranks(), round, bytes);
}

void gathers_every_size(Rank& rank) {
    auto opened = rank.open();
    ASSERT_TRUE(opened.ok()) << opened.status().message();
    std::size_t round = 0;
    for (const std::size_t bytes : {0U, 1U, 2U, 3U, 7U, 8U, 127U, 1000U, 4096U, 65535U, 65536U, 65537U, 1U << 20U})
        gather_once(*opened.value(), ++round, bytes);
}

void gathers_in_place(Rank& rank) {
    auto opened = rank.open();
    ASSERT_TRUE(opened.ok()) << opened.status().message();
    Bootstrap& job = *opened.value();
    constexpr std::size_t bytes = 999;
    Buffer all(bytes * static_cast<std::size_t>(job.nranks()));
    const auto mine = std::span(all).subspan(static_cast<std::size_t>(job.rank()) * bytes, bytes);
    std::ranges::copy(pattern_of(job.rank(), 5, bytes), mine.begin());
    const Status gathered = job.allgather(mine, all);
    ASSERT_TRUE(gathered.ok()) << gathered.message();
    expect_all(all, job.nranks(), 5, bytes);
}

void gathers_hundreds_of_times(Rank& rank) {
    auto opened = rank.open();
    ASSERT_TRUE(opened.ok()) << opened.status().message();
    constexpr std::size_t rounds = 200;
    for (std::size_t round = 0; round < rounds && !::testing::Test::HasFailure(); ++round)
        gather_once(*opened.value(), round, round % 17);
}

void gathers_nothing_repeatedly(Rank& rank) {
    auto opened = rank.open();
    ASSERT_TRUE(opened.ok()) << opened.status().message();
    Bootstrap& job = *opened.value();
    for (std::size_t round = 0; round < 50 && !::testing::Test::HasFailure(); ++round) {
        const Status gathered = job.allgather({}, {});
        ASSERT_TRUE(gathered.ok()) << "round " << round << ": " << gathered.message();
        gather_once(job, round, round % 2);  // what remains of an empty call would disturb the next one
    }
}

void gathers_16_mib_of_each_rank(Rank& rank) {
    auto opened = rank.open();
    ASSERT_TRUE(opened.ok()) << opened.status().message();
    gather_once(*opened.value(), 1, std::size_t{16} << 20U);
    gather_once(*opened.value(), 2, 3);
}

// A buffer between two areas that must keep their bytes.
class GuardedBuffer {
public:
    explicit GuardedBuffer(std::size_t bytes) : bytes_(bytes), all_(bytes + 2 * guard_bytes, mark) {}

    [[nodiscard]] std::span<std::byte> bytes() { return std::span(all_).subspan(guard_bytes, bytes_); }
    [[nodiscard]] bool intact() const {
        const auto is_mark = [](std::byte each) { return each == mark; };
        const auto end = all_.begin() + static_cast<std::ptrdiff_t>(guard_bytes + bytes_);
        return std::all_of(all_.begin(), all_.begin() + guard_bytes, is_mark) && std::all_of(end, all_.end(), is_mark);
    }

private:
    static constexpr std::ptrdiff_t guard_bytes = 1 << 16;
    static constexpr std::byte mark{0xa5};

    std::size_t bytes_;
    Buffer all_;
};

void gathers_into_nothing_but_the_buffer(Rank& rank) {
    auto opened = rank.open();
    ASSERT_TRUE(opened.ok()) << opened.status().message();
    Bootstrap& job = *opened.value();
    for (const std::size_t bytes : {0U, 1U, 1000U, 65537U}) {
        GuardedBuffer received(bytes * static_cast<std::size_t>(job.nranks()));
        const Status gathered = job.allgather(pattern_of(job.rank(), 0, bytes), received.bytes());
        ASSERT_TRUE(gathered.ok()) << gathered.message();
        EXPECT_TRUE(received.intact()) << "an allgather of " << bytes << " bytes per rank wrote outside its buffer";
    }
}

Status gather_guarded(Bootstrap& job, std::size_t bytes) {
    GuardedBuffer received(bytes * static_cast<std::size_t>(job.nranks()));
    Status gathered = job.allgather(pattern_of(job.rank(), 0, bytes), received.bytes());
    EXPECT_TRUE(received.intact()) << "the allgather wrote outside the buffer";
    EXPECT_FALSE(job.barrier().ok()) << "a job that has failed stays failed";
    return gathered;
}

// The sizes of one rank and of all others. A rank that has not noticed itself learns of the failure from another one;
// if that rank was faster, already in open.
void different_sizes_fail(Rank& rank, bool first_rank_differs, std::size_t its_bytes, std::size_t bytes_of_others) {
    auto opened = rank.open();
    const int different = first_rank_differs ? 0 : rank.nranks() - 1;
    Status status = opened.status();
    if (status.ok())
        status = gather_guarded(*opened.value(), opened.value()->rank() == different ? its_bytes : bytes_of_others);
    ASSERT_FALSE(status.ok()) << "rank " << different << " gave " << its_bytes << " bytes, the others "
                              << bytes_of_others;
    EXPECT_TRUE(status.code() == Code::mismatch || status.code() == Code::aborted)
        << name_of(status.code()) << ": " << status.message();
}

void different_sizes_fail_everywhere(Rank& rank) {
    constexpr std::size_t large = 300000;
    for (const bool first_rank_differs : {true, false})
        for (const auto& [its_bytes, bytes_of_others] :
             {std::pair<std::size_t, std::size_t>{24, 16}, {16, 24}, {0, 16}, {16, 0}, {large, 16}, {16, large}})
            if (!::testing::Test::HasFailure())
                different_sizes_fail(rank, first_rank_differs, its_bytes, bytes_of_others);
}

}  // namespace

std::vector<BootstrapCase> bootstrap_gather_cases() {
    using enum CaseRanks;
    constexpr int ranks_of_large_gathers = 3;  // each process holds the contributions of all
    return {{"gathers_every_size", 1, few_ranks, any, gathers_every_size},
            {"gathers_in_place", 1, many_ranks, any, gathers_in_place},
            {"gathers_hundreds_of_times", 1, few_ranks, any, gathers_hundreds_of_times},
            {"gathers_nothing_repeatedly", 1, few_ranks, any, gathers_nothing_repeatedly},
            {"gathers_16_mib_of_each_rank", 1, ranks_of_large_gathers, any, gathers_16_mib_of_each_rank},
            {"gathers_into_nothing_but_the_buffer", 1, few_ranks, any, gathers_into_nothing_but_the_buffer},
            {"different_sizes_fail_everywhere", 2, few_ranks, any, different_sizes_fail_everywhere}};
}

}  // namespace npushmem::contract
