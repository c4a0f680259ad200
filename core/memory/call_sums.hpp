// SPDX-License-Identifier: BSD-3-Clause
// Shows whether all PEs made the same collective call of the heap, where there are too many PEs for each to read the
// records of all others. To read a record maps one page of that PE's slice, behind up to 8 KiB of page tables: 256 PEs
// of a host need seconds for their first malloc.
//
// Each host has a sum for each parity of the calls, in the control block of its first PE. Before the barrier of a call
// every PE adds the digest of its call to the sum of its host. After it, the sum of each host has grown by the digest
// times its PEs if all digests are equal. If they are not, it has done so only by chance: for n PEs at most n times in
// 2^64 calls.
#pragma once

#include <array>
#include <atomic>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <utility>
#include <vector>

#include "npushmem/plugin/status.hpp"

namespace npushmem {

class CallSums {
public:
    // The sums of one host, by parity. A PE may add for barrier n + 1 while another still reads the sum of n, but none
    // adds for n + 2 before all have entered n + 1.
    using Words = std::atomic<std::uint64_t>[2];
    // Returns the sum of another host.
    using Read = std::function<Result<std::uint64_t>(std::size_t host, unsigned parity)>;

    // `own` are the sums of this PE's host, zero at the start; `pes` is the number of PEs of each host.
    CallSums(Words& own, std::size_t own_host, std::vector<int> pes, Read read)
        : own_(own), own_host_(own_host), pes_(std::move(pes)), known_(pes_.size()), read_(std::move(read)) {}

    // Before the barrier. Digests of different calls must look unrelated, see digest_of in collective_heap.cpp.
    void add(unsigned parity, std::uint64_t digest) { own_[parity].fetch_add(digest, std::memory_order_relaxed); }
    // After it: returns whether all PEs have added this digest. Also false where that is unknown: this PE missed an
    // earlier call of this parity, or the sum of a host cannot be read.
    [[nodiscard]] bool show_equal(unsigned parity, std::uint64_t digest);

private:
    Words& own_;
    std::size_t own_host_;
    std::vector<int> pes_;
    std::vector<std::array<std::uint64_t, 2>> known_;  // of each host, by parity: the sum after the last call
    Read read_;
};

}  // namespace npushmem
