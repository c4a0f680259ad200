// SPDX-License-Identifier: BSD-3-Clause
// Wrong calls: each reports a code and a message with the values, has no other effect, and leaves the library usable.
// Every PE makes them, so no PE waits.
#include <algorithm>
#include <cstring>
#include <iterator>
#include <limits>
#include <set>
#include <string_view>
#include <vector>

#include "npushmem.h"
#include "npushmem/plugin/abi.h"
#include "npushmemx.h"
#include "tests/integration/api/programs/checker.hpp"

namespace npushmem::api_test {
namespace {

// The arguments of the calls, which must stay unchanged.
struct Objects {
    long* words;  // symmetric, of `count` elements
    std::uint64_t* signal;
    long* end;  // of the heap
    long local[4];
    static constexpr std::size_t count = 8;
};

void call_puts(Checker& check, Objects& o, int pe, int code, const std::string& word) {
    const auto failed = [&](const char* what) { check.failed_with(what, code, {what, word}); };
    npushmem_long_p(o.words, 1, pe);
    failed("npushmem_long_p");
    npushmem_long_put(o.words, o.local, 1, pe);
    failed("npushmem_long_put");
    npushmem_put64_nbi(o.words, o.local, 1, pe);
    failed("npushmem_put64_nbi");
    npushmem_putmem(o.words, o.local, 8, pe);
    failed("npushmem_putmem");
    npushmem_long_iput(o.words, o.local, 1, 1, 2, pe);
    failed("npushmem_long_iput");
    npushmem_long_put_signal(o.words, o.local, 1, o.signal, 1, NPUSHMEM_SIGNAL_OP_SET, pe);
    failed("npushmem_long_put_signal");
    npushmem_signal_set(o.signal, 1, pe);
    failed("npushmem_signal_set");
    npushmem_signal_add(o.signal, 1, pe);
    failed("npushmem_signal_add");
}

void call_gets(Checker& check, Objects& o, int pe, int code, const std::string& word) {
    const auto failed = [&](const char* what) { check.failed_with(what, code, {what, word}); };
    check.equal("npushmem_long_g that failed", 0L, npushmem_long_g(o.words, pe));
    failed("npushmem_long_g");
    npushmem_long_get(o.local, o.words, 1, pe);
    failed("npushmem_long_get");
    npushmem_get64_nbi(o.local, o.words, 1, pe);
    failed("npushmem_get64_nbi");
    npushmem_getmem(o.local, o.words, 8, pe);
    failed("npushmem_getmem");
    npushmem_long_iget(o.local, o.words, 1, 1, 2, pe);
    failed("npushmem_long_iget");
    check.that("npushmem_ptr that failed", npushmem_ptr(o.words, pe) == nullptr);
    failed("npushmem_ptr");
}

void call_atomics(Checker& check, Objects& o, int pe, int code, const std::string& word) {
    const auto failed = [&](const char* what) { check.failed_with(what, code, {what, word}); };
    long later = -1;
    (void)npushmem_long_atomic_fetch(o.words, pe);
    failed("npushmem_long_atomic_fetch");
    npushmem_long_atomic_set(o.words, 1, pe);
    failed("npushmem_long_atomic_set");
    (void)npushmem_long_atomic_swap(o.words, 1, pe);
    failed("npushmem_long_atomic_swap");
    (void)npushmem_long_atomic_compare_swap(o.words, 0, 1, pe);
    failed("npushmem_long_atomic_compare_swap");
    npushmem_long_atomic_inc(o.words, pe);
    failed("npushmem_long_atomic_inc");
    npushmem_long_atomic_fetch_add_nbi(&later, o.words, 1, pe);
    failed("npushmem_long_atomic_fetch_add_nbi");
    npushmem_ulong_atomic_xor(reinterpret_cast<unsigned long*>(o.words), 1, pe);
    failed("npushmem_ulong_atomic_xor");
    check.equal("result of an nbi atomic that failed", -1L, later);
}

void test_pe_out_of_range(Checker& check, const Job& job, Objects& o) {
    for (const int pe :
         {-1, job.npes, job.npes + 1000, std::numeric_limits<int>::max(), std::numeric_limits<int>::min()}) {
        const std::string word = fmt::format("PE {} ", pe);
        call_puts(check, o, pe, NPUSHMEM_E_RANGE, word);
        call_gets(check, o, pe, NPUSHMEM_E_RANGE, word);
        call_atomics(check, o, pe, NPUSHMEM_E_RANGE, word);
        // Even when there is nothing to transfer.
        npushmem_long_put(o.words, o.local, 0, pe);
        check.failed_with("put of nothing", NPUSHMEM_E_RANGE, {word});
        check.equal("pe_accessible", 0, npushmem_pe_accessible(pe));
        check.equal("addr_accessible", 0, npushmem_addr_accessible(o.words, pe));
        check.no_error("questions about a PE that does not exist");
    }
}

void test_addresses(Checker& check, const Job& job, const Objects& good) {
    Objects o = good;
    o.words = nullptr;
    o.signal = nullptr;
    call_puts(check, o, job.right(), NPUSHMEM_E_ARGUMENT, "NULL");
    call_gets(check, o, job.right(), NPUSHMEM_E_ARGUMENT, "NULL");
    call_atomics(check, o, job.right(), NPUSHMEM_E_ARGUMENT, "NULL");
    long elsewhere[4]{};
    std::uint64_t no_signal = 0;
    o.words = elsewhere;
    o.signal = &no_signal;
    call_puts(check, o, job.right(), NPUSHMEM_E_NOT_SYMMETRIC, "npushmem_malloc");
    call_gets(check, o, job.right(), NPUSHMEM_E_NOT_SYMMETRIC, "npushmem_malloc");
    call_atomics(check, o, job.right(), NPUSHMEM_E_NOT_SYMMETRIC, "npushmem_malloc");
    check.equal("addr_accessible of a local variable", 0, npushmem_addr_accessible(elsewhere, job.me));
    check.equal("addr_accessible of NULL", 0, npushmem_addr_accessible(nullptr, job.me));
    check.no_error("questions about addresses");
}

void test_local_null(Checker& check, const Job& job, const Objects& o) {
    const auto failed = [&](const char* what) { check.failed_with(what, NPUSHMEM_E_ARGUMENT, {what, "NULL"}); };
    npushmem_long_put(o.words, nullptr, 2, job.right());
    failed("npushmem_long_put");
    npushmem_long_get(nullptr, o.words, 2, job.right());
    failed("npushmem_long_get");
    npushmem_long_iput(o.words, nullptr, 1, 1, 2, job.right());
    failed("npushmem_long_iput");
    npushmem_long_iget(nullptr, o.words, 1, 1, 2, job.right());
    failed("npushmem_long_iget");
    npushmem_long_put_signal(o.words, nullptr, 2, o.signal, 1, NPUSHMEM_SIGNAL_OP_SET, job.right());
    failed("npushmem_long_put_signal");
    npushmem_long_atomic_fetch_nbi(nullptr, o.words, job.right());
    failed("npushmem_long_atomic_fetch_nbi");
    check.that("heap_info(NULL)", npushmemx_heap_info(nullptr) == NPUSHMEM_E_ARGUMENT);
    failed("npushmemx_heap_info");
}

void test_counts(Checker& check, const Job& job, const Objects& o) {
    constexpr std::size_t largest = ~std::size_t{0};
    const auto failed = [&](const char* what, const char* word) {
        check.failed_with(what, NPUSHMEM_E_RANGE, {what, word});
    };
    npushmem_long_put(o.words, o.local, largest / 4, job.right());  // the product wraps to a small number
    failed("npushmem_long_put", "overflow");
    npushmem_long_get(const_cast<long*>(o.local), o.words, largest, job.right());
    failed("npushmem_long_get", "overflow");
    npushmem_put128(o.words, o.local, largest / 16 + 2, job.right());
    failed("npushmem_put128", "overflow");
    npushmem_long_put(o.words, o.local, static_cast<std::size_t>(o.end - o.words) + 1, job.right());
    failed("npushmem_long_put", "beyond the symmetric heap");
    npushmem_putmem(o.words, o.local, largest, job.right());
    failed("npushmem_putmem", "npushmem_putmem");
    npushmem_long_iput(o.words, o.local, std::numeric_limits<std::ptrdiff_t>::max(), 1, 4, job.right());
    failed("npushmem_long_iput", "overflow");
    npushmem_long_iget(const_cast<long*>(o.local), o.words, 1, o.end - o.words, 3, job.right());
    failed("npushmem_long_iget", "beyond the symmetric heap");
    npushmem_long_put_signal(o.words, o.local, largest / 2, o.signal, 1, NPUSHMEM_SIGNAL_OP_SET, job.right());
    failed("npushmem_long_put_signal", "overflow");
}

void test_strides(Checker& check, const Job& job, const Objects& o) {
    for (const std::ptrdiff_t wrong : {std::ptrdiff_t{0}, std::ptrdiff_t{-3}}) {
        npushmem_long_iput(o.words, o.local, wrong, 1, 2, job.right());
        check.failed_with("npushmem_long_iput", NPUSHMEM_E_ARGUMENT,
                          {"npushmem_long_iput", "stride", std::to_string(wrong)});
        npushmem_iget32(const_cast<long*>(o.local), o.words, 1, wrong, 2, job.right());
        check.failed_with("npushmem_iget32", NPUSHMEM_E_ARGUMENT, {"npushmem_iget32", "stride", std::to_string(wrong)});
    }
}

void test_operations(Checker& check, const Job& job, const Objects& o) {
    for (const int wrong : {-1, 6, 1000}) {
        npushmem_long_wait_until(o.words, wrong, 0);
        check.failed_with("npushmem_long_wait_until", NPUSHMEM_E_ARGUMENT, {"comparison", std::to_string(wrong)});
        check.equal("a test that failed", 0, npushmem_long_test(o.words, wrong, 0));
        check.failed_with("npushmem_long_test", NPUSHMEM_E_ARGUMENT, {"comparison", std::to_string(wrong)});
        (void)npushmem_signal_wait_until(o.signal, wrong, 0);
        check.failed_with("npushmem_signal_wait_until", NPUSHMEM_E_ARGUMENT, {"comparison", std::to_string(wrong)});
        npushmem_long_put_signal(o.words, o.local, 1, o.signal, 1, wrong + 2, job.right());
        check.failed_with("npushmem_long_put_signal", wrong == -1 ? 0 : NPUSHMEM_E_ARGUMENT,
                          {wrong == -1 ? "" : "sig_op " + std::to_string(wrong + 2)});
    }
}

void test_waits(Checker& check, Objects& o) {
    long elsewhere = 0;
    npushmem_long_wait_until(&elsewhere, NPUSHMEM_CMP_EQ, 0);
    check.failed_with("wait for a local variable", NPUSHMEM_E_NOT_SYMMETRIC, {"npushmem_long_wait_until"});
    check.equal("test of NULL", 0, npushmem_long_test(nullptr, NPUSHMEM_CMP_EQ, 0));
    check.failed_with("test of NULL", NPUSHMEM_E_ARGUMENT, {"npushmem_long_test", "NULL"});
    check.equal("signal_fetch of NULL", std::uint64_t{0}, npushmem_signal_fetch(nullptr));
    check.failed_with("signal_fetch of NULL", NPUSHMEM_E_ARGUMENT, {"npushmem_signal_fetch", "NULL"});
    auto* odd = reinterpret_cast<std::uint64_t*>(reinterpret_cast<char*>(o.signal) + 4);
    npushmem_signal_set(odd, 1, 0);
    check.failed_with("a signal that is not aligned", NPUSHMEM_E_ARGUMENT, {"npushmem_signal_set", "aligned"});
}

// Each thread has its own last failure. A failure replaces it, a success keeps it, clear removes it.
void test_last_error(Checker& check, const Job& job, Objects& o) {
    check.equal("code after clear", 0, npushmemx_last_error(nullptr));
    npushmem_long_p(o.words, 1, -7);
    npushmem_long_p(nullptr, 1, job.me);
    (void)npushmem_my_pe();
    check.failed_with("the last of two failures", NPUSHMEM_E_ARGUMENT, {"npushmem_long_p", "NULL"});
}

void test_nothing_changed(Checker& check, const Objects& o) {
    npushmem_barrier_all();
    for (std::size_t i = 0; i < Objects::count; ++i)
        check.equal(fmt::format("word {} after the mistakes", i), 0L, o.words[i]);
    for (const long word : o.local) check.equal("local word after the mistakes", 5L, word);
    check.no_error("after the mistakes");
}

// Every PE rejects wrong names itself and at once; later calls work.
void test_wrong_barriers(Checker& check) {
    const auto refused = [&](const char* name, int code, std::string_view word) {
        check.equal(name, code, npushmemx_barrier_all_by(name));
        check.failed_with(name, code, {word});
    };
    refused("treee", NPUSHMEM_E_CONFIG, "tree");
    refused("linear:2", NPUSHMEM_E_CONFIG, "has no radix");
    refused("knomial_tree:1", NPUSHMEM_E_CONFIG, "2 to 32");
    check.equal("a null name", NPUSHMEM_E_ARGUMENT, npushmemx_barrier_all_by(nullptr));
    npushmemx_clear_error();
    npushmem_barrier_all();
}

// Two PEs that disagree on their bytes get the failure, and the others' are sent.
void test_alltoallv(Checker& check, const Job& job, Objects& o) {
    const auto n = static_cast<std::size_t>(job.npes);
    std::vector<std::size_t> counts(n, 0), expected(n, 0), zeros(n, 0);
    const auto call = [&] {
        return npushmemx_long_alltoallv(NPUSHMEM_TEAM_WORLD, o.words, expected.data(), zeros.data(), o.words + 1,
                                        counts.data(), zeros.data());
    };
    if (job.me == 0) counts[n - 1] = 2;
    if (job.me == job.npes - 1) expected[0] = 1;
    const bool concerned = job.me == 0 || job.me == job.npes - 1;
    check.equal("alltoallv with different counts", concerned ? NPUSHMEM_E_MISMATCH : 0, call());
    if (concerned)
        check.failed_with("npushmemx_long_alltoallv", NPUSHMEM_E_MISMATCH,
                          {"member 0 sends 16 bytes", "expects 8 bytes"});
    check.equal("alltoallv without counts", NPUSHMEM_E_ARGUMENT,
                npushmemx_alltoallvmem(NPUSHMEM_TEAM_WORLD, o.words, zeros.data(), nullptr, o.words, zeros.data(),
                                       zeros.data()));
    check.failed_with("npushmemx_alltoallvmem", NPUSHMEM_E_ARGUMENT, {"dest_offsets is NULL"});
    std::fill(counts.begin(), counts.end(), ~std::size_t{0} / 4);
    check.equal("alltoallv beyond the heap", NPUSHMEM_E_RANGE, call());
    check.failed_with("npushmemx_long_alltoallv", NPUSHMEM_E_RANGE, {"source"});
    npushmem_barrier_all();
}

void test_error_strings(Checker& check) {
    std::set<std::string_view> texts;
    const int codes[] = {NPUSHMEM_OK,
                         NPUSHMEM_AGAIN,
                         NPUSHMEM_E_ARGUMENT,
                         NPUSHMEM_E_RANGE,
                         NPUSHMEM_E_NOT_SYMMETRIC,
                         NPUSHMEM_E_NOT_INITIALIZED,
                         NPUSHMEM_E_STATE,
                         NPUSHMEM_E_MISMATCH,
                         NPUSHMEM_E_CONFIG,
                         NPUSHMEM_E_PLUGIN_MISSING,
                         NPUSHMEM_E_PLUGIN_REFUSED,
                         NPUSHMEM_E_UNSUPPORTED,
                         NPUSHMEM_E_UNREACHABLE,
                         NPUSHMEM_E_PEER_DEAD,
                         NPUSHMEM_E_TIMEOUT,
                         NPUSHMEM_E_PROTOCOL,
                         NPUSHMEM_E_ABORTED,
                         NPUSHMEM_E_MEMORY,
                         NPUSHMEM_E_SYSTEM};
    for (const int code : codes) texts.insert(npushmemx_error_string(code));
    check.equal("different texts of codes", std::size(codes), texts.size());
    check.equal("text of no code", std::string("unknown code"), std::string(npushmemx_error_string(-77)));
    check.that("texts of codes do not include that", !texts.contains("unknown code"));
    check.equal("text of a code", std::string("a PE has died"),
                std::string(npushmemx_error_string(NPUSHMEM_E_PEER_DEAD)));
}

void test_errors(Checker& check, const Job& job) {
    npushmemx_heap_info_t heap{};
    (void)npushmemx_heap_info(&heap);
    Objects o{};
    o.words = static_cast<long*>(npushmem_calloc(Objects::count, sizeof(long)));
    o.signal = static_cast<std::uint64_t*>(npushmem_calloc(2, sizeof(std::uint64_t)));
    o.end = o.words + heap.capacity / sizeof(long);  // not before the end
    for (long& word : o.local) word = 5;
    test_pe_out_of_range(check, job, o);
    test_addresses(check, job, o);
    test_local_null(check, job, o);
    test_counts(check, job, o);
    test_strides(check, job, o);
    test_waits(check, o);
    test_wrong_barriers(check);
    test_alltoallv(check, job, o);
    test_error_strings(check);
    test_nothing_changed(check, o);
    check.equal("the signal after the mistakes", std::uint64_t{0}, *o.signal);
    npushmem_barrier_all();  // one of the operations below is none
    test_operations(check, job, o);
    test_last_error(check, job, o);
    npushmem_barrier_all();
    npushmem_free(o.signal);
    npushmem_free(o.words);
    check.no_error("the end");
}

}  // namespace
}  // namespace npushmem::api_test

int main() { return npushmem::api_test::run_family("errors", npushmem::api_test::test_errors); }
