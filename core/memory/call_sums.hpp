// SPDX-License-Identifier: BSD-3-Clause
// Shows that all PEs made the same collective call of the heap, for jobs in which a PE must not read the record of each
// other PE: that maps one page of each slice and takes up to 8 KiB of page tables for each, so that 256 PEs of a host
// need seconds for their first malloc.
//
// Each host has a sum for each parity of the calls, in the control block of its first PE. Before the barrier of a call
// every PE adds the digest of its call to the sum of its host. After it, the sum of each host has grown by the digest
// times its PEs if all digests are equal. Otherwise it has done so only by chance, once in 2^64 calls.
#pragma once

#include <array>
#include <atomic>
#include <cstddef>
#include <cstdint>
#include <functional>
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

    // Before the barrier. The digests of different calls must not depend on each other, see digest_of in
    // collective_heap.cpp.
    void add(unsigned parity, std::uint64_t digest) { own_[parity].fetch_add(digest, std::memory_order_relaxed); }
    // After it: returns whether all PEs have added this digest. False if this PE missed a call that others made. Fails
    // when the sum of a host cannot be read.
    Result<bool> show_equal(unsigned parity, std::uint64_t digest);

private:
    Words& own_;
    std::size_t own_host_;
    std::vector<int> pes_;
    std::vector<std::array<std::uint64_t, 2>> known_;  // of each host, by parity: the sum after the last call
    Read read_;
};

}  // namespace npushmem
