// SPDX-License-Identifier: BSD-3-Clause
// Allgather: every size, every rank's bytes in their place, repeatedly.
#include <gtest/gtest.h>

#include <algorithm>
#include <cstdint>

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

void gathers_every_size(const BootstrapSubject& subject) {
    auto opened = subject.open();
    ASSERT_TRUE(opened.ok()) << opened.status().message();
    std::size_t round = 0;
    for (const std::size_t bytes : {0U, 1U, 2U, 3U, 7U, 8U, 127U, 1000U, 4096U, 65535U, 65536U, 65537U, 1U << 20U})
        gather_once(*opened.value(), ++round, bytes);
}

void gathers_in_place(const BootstrapSubject& subject) {
    auto opened = subject.open();
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

void gathers_hundreds_of_times(const BootstrapSubject& subject) {
    auto opened = subject.open();
    ASSERT_TRUE(opened.ok()) << opened.status().message();
    constexpr std::size_t rounds = 200;
    for (std::size_t round = 0; round < rounds && !::testing::Test::HasFailure(); ++round)
        gather_once(*opened.value(), round, round % 17);
}

void different_sizes_fail_everywhere(const BootstrapSubject& subject) {
    auto opened = subject.open();
    ASSERT_TRUE(opened.ok()) << opened.status().message();
    Bootstrap& job = *opened.value();
    const std::size_t bytes = job.rank() == job.nranks() - 1 ? 24 : 16;
    Buffer received(bytes * static_cast<std::size_t>(job.nranks()));
    const Status gathered = job.allgather(pattern_of(job.rank(), 0, bytes), received);
    ASSERT_FALSE(gathered.ok());
    EXPECT_EQ(gathered.code(), Code::mismatch) << gathered.message();
    EXPECT_FALSE(job.barrier().ok()) << "a job that has failed stays failed";
}

}  // namespace

std::vector<BootstrapCase> bootstrap_gather_cases() {
    return {{"gathers_every_size", 1, gathers_every_size},
            {"gathers_in_place", 1, gathers_in_place},
            {"gathers_hundreds_of_times", 1, gathers_hundreds_of_times},
            {"different_sizes_fail_everywhere", 2, different_sizes_fail_everywhere}};
}

}  // namespace npushmem::contract
