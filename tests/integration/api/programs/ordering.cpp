// SPDX-License-Identifier: BSD-3-Clause
// fence, quiet, barrier_all, sync_all: litmus tests, each repeated many times, with forbidden outcomes.
#include <algorithm>
#include <array>
#include <iterator>
#include <string_view>
#include <vector>

#include "npushmemx.h"
#include "tests/integration/api/programs/checker.hpp"

namespace npushmem::api_test {
namespace {

constexpr int rounds = 60;

template <class T>
T* zeros(std::size_t count) {
    return static_cast<T*>(npushmem_calloc(count, sizeof(T)));
}

// Data, fence, flag: a PE that sees the flag sees the data. The flag is an atomic, a p or a signal.
void test_message_passing(Checker& check, const Job& job, int kind) {
    constexpr std::size_t count = 48;
    auto* data = zeros<long>(count);
    auto* flag = zeros<std::uint64_t>(2);
    std::vector<long> source(count);
    for (int round = 1; round <= rounds; ++round) {
        const auto stamp = static_cast<std::uint64_t>(round);
        std::fill(source.begin(), source.end(), round);
        // One put for each element, so that there is something to shuffle.
        for (std::size_t i = 0; i < count; i += 8) npushmem_long_put_nbi(data + i, source.data() + i, 8, job.right());
        npushmem_fence();
        if (kind == 0) npushmem_uint64_atomic_set(flag, stamp, job.right());
        if (kind == 1) npushmem_uint64_p(flag, stamp, job.right());
        if (kind == 2) npushmem_signal_set(flag, stamp, job.right());
        npushmem_uint64_wait_until(flag, NPUSHMEM_CMP_GE, stamp);
        const auto wrong = std::count_if(data, data + count, [&](long seen) { return seen != round; });
        check.equal(fmt::format("message passing of kind {}, round {}: old elements", kind, round), long{0},
                    static_cast<long>(wrong));
        npushmem_quiet();
        npushmem_uint64_atomic_set(flag + 1, stamp, job.left());  // consumed
        npushmem_uint64_wait_until(flag + 1, NPUSHMEM_CMP_GE, stamp);
    }
    npushmem_barrier_all();
    npushmem_free(flag);
    npushmem_free(data);
}

// Fences between puts to one word: the last one stays.
void test_fence_chain(Checker& check, const Job& job) {
    auto* word = zeros<int>(1);
    for (int round = 0; round < rounds; ++round) {
        std::array<int, 4> values{round, round + 1000, round + 2000, round + 3000};
        for (int& value : values) {
            npushmem_int_put_nbi(word, &value, 1, job.right());
            npushmem_fence();
        }
        npushmem_barrier_all();
        check.equal("the last of four fenced puts", round + 3000, *word);
        npushmem_barrier_all();
    }
    npushmem_free(word);
}

// PE a writes its word, quiet, reads the other's: at least one of both sees the other's write. The words lie at their
// writers, at their readers, or on a third PE.
void test_store_buffering(Checker& check, const Job& job, int x_home, int y_home) {
    if (job.npes < 2) return;
    auto* words = zeros<int>(2);
    auto* seen = zeros<int>(2);
    for (int round = 1; round <= rounds; ++round) {
        if (job.me < 2) {
            const bool first = job.me == 0;
            npushmem_int_p(words + (first ? 0 : 1), round, first ? x_home : y_home);
            npushmem_quiet();
            const int other = npushmem_int_g(words + (first ? 1 : 0), first ? y_home : x_home);
            npushmem_int_p(seen + job.me, other, 0);
        }
        npushmem_barrier_all();
        if (job.me == 0)
            check.that(fmt::format("store buffering over PEs {} and {}, round {}: both PEs missed the other's write",
                                   x_home, y_home, round),
                       seen[0] == round || seen[1] == round);
        npushmem_barrier_all();
    }
    npushmem_free(seen);
    npushmem_free(words);
}

// PE 0 writes to PE 1, calls quiet, signals PE 2; PE 2 finds the data at PE 1: quiet makes them visible to all.
void test_third_pe(Checker& check, const Job& job) {
    if (job.npes < 3) return;
    auto* data = zeros<long>(1);
    auto* flag = zeros<std::uint64_t>(1);
    for (int round = 1; round <= rounds; ++round) {
        const long value = round;
        if (job.me == 0) {
            npushmem_long_put_nbi(data, &value, 1, 1);
            npushmem_quiet();
            npushmem_signal_set(flag, static_cast<std::uint64_t>(round), 2);
        }
        if (job.me == 2) {
            npushmem_signal_wait_until(flag, NPUSHMEM_CMP_EQ, static_cast<std::uint64_t>(round));
            check.equal("data at a third PE after quiet", value, npushmem_long_g(data, 1));
        }
        npushmem_barrier_all();
    }
    npushmem_free(flag);
    npushmem_free(data);
}

// After quiet, results are readable and buffers reusable: own puts by get, nbi gets, nbi atomics.
void test_quiet(Checker& check, const Job& job) {
    auto* words = zeros<int>(8);
    for (int round = 1; round <= rounds; ++round) {
        std::array<int, 8> out{};
        std::fill(out.begin(), out.end(), round * 10 + job.me);
        std::array<int, 8> in{};
        npushmem_int_put_nbi(words, out.data(), out.size(), job.right());
        npushmem_quiet();
        npushmem_int_get_nbi(in.data(), words, in.size(), job.right());
        int old = -1;
        npushmem_int_atomic_fetch_nbi(&old, words + 3, job.right());
        npushmem_quiet();
        check.that("own puts are read after quiet", in == out);
        check.equal("atomic_fetch_nbi after quiet", out[3], old);
    }
    npushmem_barrier_all();
    npushmem_free(words);
}

// After flush the source of a put may be changed, and the result of a get is there. Only quiet delivers.
void test_flush(Checker& check, const Job& job) {
    npushmem_ctx_t ctx = NPUSHMEM_CTX_INVALID;
    npushmem_ctx_create(0, &ctx);
    for (const npushmem_ctx_t on : {NPUSHMEM_CTX_DEFAULT, ctx}) {
        auto* words = zeros<long>(64);
        for (int round = 1; round <= rounds; ++round) {
            std::array<long, 32> out{};
            std::fill(out.begin(), out.end(), round * 10 + job.me);
            npushmem_ctx_long_put_nbi(on, words, out.data(), out.size(), job.right());
            if (on == NPUSHMEM_CTX_DEFAULT)
                npushmemx_flush();
            else
                npushmemx_ctx_flush(on);
            std::fill(out.begin(), out.end(), -1);
            npushmem_ctx_quiet(on);
            npushmem_sync_all();
            const auto wrong =
                std::count_if(words, words + out.size(), [&](long seen) { return seen != round * 10 + job.left(); });
            check.equal("elements of a put that changed after flush", long{0}, static_cast<long>(wrong));
            long got = -1;
            npushmem_ctx_long_get_nbi(on, &got, words, 1, job.me);
            npushmemx_ctx_flush(on);
            check.equal("a get after flush", words[0], got);
            npushmem_sync_all();
        }
        npushmem_free(words);
    }
    npushmem_ctx_destroy(ctx);
    npushmemx_ctx_flush(NPUSHMEM_CTX_INVALID);
}

// barrier_all completes puts to all PEs, as quiet and sync_all do.
void test_barriers(Checker& check, const Job& job) {
    auto* slots = zeros<int>(static_cast<std::size_t>(job.npes));
    for (int round = 1; round <= rounds; ++round) {
        const int value = round * 100 + job.me;
        for (int pe = 0; pe < job.npes; ++pe) npushmem_int_put_nbi(slots + job.me, &value, 1, pe);
        if (round % 3 == 0) {
            // Another one each time: calls by different algorithms may follow each other.
            constexpr const char* others[] = {"tournament", "dissemination_k:3", "knomial_tree:4", "linear", "bruck"};
            check.equal("barrier_all_by", 0, npushmemx_barrier_all_by(others[round / 3 % std::size(others)]));
        } else if (round % 3 == 1) {
            npushmem_barrier_all();
        } else {
            npushmem_quiet();
            npushmem_sync_all();
        }
        for (int pe = 0; pe < job.npes; ++pe)
            check.equal(fmt::format("slot of PE {} after the barrier", pe), round * 100 + pe, slots[pe]);
        npushmem_sync_all();
    }
    npushmem_free(slots);
}

// Stores through npushmem_ptr are ordered like puts.
void test_pointer_stores(Checker& check, const Job& job) {
    auto* data = zeros<long>(1);
    auto* flag = zeros<std::uint64_t>(2);
    auto* there = static_cast<long*>(npushmem_ptr(data, job.right()));
    for (int round = 1; round <= rounds; ++round) {
        const auto stamp = static_cast<std::uint64_t>(round);
        if (there != nullptr)
            *there = round;
        else
            npushmem_long_p(data, round, job.right());
        npushmem_fence();
        npushmem_signal_set(flag, stamp, job.right());
        npushmem_signal_wait_until(flag, NPUSHMEM_CMP_EQ, stamp);
        check.equal("data stored through a pointer", long{round}, *data);
        npushmem_signal_set(flag + 1, stamp, job.left());
        npushmem_signal_wait_until(flag + 1, NPUSHMEM_CMP_EQ, stamp);
    }
    npushmem_barrier_all();
    npushmem_free(flag);
    npushmem_free(data);
}

void test_pe_density(Checker& check, const Job& job) {
    int per_node = 0;
    double per_core = 0;
    check.equal("get_pe_density", 0, npushmemx_get_pe_density(&per_node, &per_core));
    check.that(fmt::format("{} PEs per node, {} per core", per_node, per_core),
               per_node >= 1 && per_node <= job.npes && per_core > 0);
    check.that("describe_barriers",
               std::string_view(npushmemx_describe_barriers()).find("tournament") != std::string::npos);
}

void test_ordering(Checker& check, const Job& job) {
    for (int kind = 0; kind < 3; ++kind) test_message_passing(check, job, kind);
    test_fence_chain(check, job);
    test_store_buffering(check, job, 0, 1);
    test_store_buffering(check, job, 1, 0);
    test_store_buffering(check, job, job.npes - 1, job.npes - 1);
    test_third_pe(check, job);
    test_quiet(check, job);
    test_flush(check, job);
    test_barriers(check, job);
    test_pointer_stores(check, job);
    test_pe_density(check, job);
    check.no_error("ordering");
}

}  // namespace
}  // namespace npushmem::api_test

int main() { return npushmem::api_test::run_family("ordering", npushmem::api_test::test_ordering); }
