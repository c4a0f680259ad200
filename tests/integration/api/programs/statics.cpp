// SPDX-License-Identifier: BSD-3-Clause
// Global and static variables of the executable as symmetric objects, in every family of functions. Built twice: at a
// fixed address and wherever the system puts it.
#include <dlfcn.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <memory>
#include <numeric>
#include <vector>

#include "npushmem.h"
#include "npushmem/plugin/abi.h"
#include "npushmemx.h"
#include "tests/integration/api/programs/checker.hpp"

// With external linkage, like the usual variables of a program.
long with_value[40] = {11, 12, 13};  // .data
long without_value[40];              // .bss
static double local_to_file = 2.5;
static char vast[1UL << 30];  // nearly untouched
extern const long constant[2];
const long constant[2] = {1, 2};
thread_local long of_thread[2];

struct Owner {
    static long of_class[8];
};
long Owner::of_class[8] = {5};

namespace npushmem::api_test {
namespace {

constexpr std::size_t many = 5000;
long large_source[many];
long large_dest[8 * many];
std::uint64_t signal_word;
long lock;
long counter;
long psync[NPUSHMEM_SYNC_SIZE];
long pwork[NPUSHMEM_REDUCE_MIN_WRKDATA_SIZE];

long* of_function() {
    static long kept[4] = {21};
    return kept;
}

long value(int pe, std::size_t index) { return pe * 1000L + static_cast<long>(index); }

void test_start(Checker& check) {
    check.equal("an initialised variable", 13L, with_value[2]);
    check.equal("an uninitialised variable", 0L, without_value[39]);
    check.equal("a variable of the file", 2.5, local_to_file);
    check.equal("a variable of a class", 5L, Owner::of_class[0]);
    check.equal("a variable of a function", 21L, of_function()[0]);
    check.equal("the last byte", char{0}, vast[sizeof vast - 1]);
}

void test_rma(Checker& check, const Job& job) {
    for (long* row : {with_value, without_value, of_function(), Owner::of_class}) {
        std::array<long, 4> source{};
        for (std::size_t i = 0; i < source.size(); ++i) source[i] = value(job.me, i);
        npushmem_barrier_all();
        npushmem_long_p(row, source[0], job.right());
        npushmem_long_put(row + 1, source.data() + 1, 1, job.right());
        npushmem_long_put_nbi(row + 2, source.data() + 2, 1, job.right());
        npushmem_long_iput(row + 3, source.data() + 3, 1, 1, 1, job.right());
        npushmem_barrier_all();
        for (std::size_t i = 0; i < source.size(); ++i) check.equal("what was put", value(job.left(), i), row[i]);
        std::array<long, 4> seen{};
        seen[0] = npushmem_long_g(row, job.right());
        npushmem_long_get(&seen[1], row + 1, 1, job.right());
        npushmem_long_get_nbi(&seen[2], row + 2, 1, job.right());
        npushmem_long_iget(&seen[3], row + 3, 1, 1, 1, job.right());
        npushmem_quiet();
        for (std::size_t i = 0; i < source.size(); ++i) check.equal("what was got", source[i], seen[i]);
    }
    npushmem_barrier_all();
    npushmem_double_p(&local_to_file, job.me + 0.25, job.right());
    npushmem_barrier_all();
    check.equal("a variable of the file", job.left() + 0.25, local_to_file);
    npushmem_char_p(vast + sizeof vast - 1, static_cast<char>('a' + job.me), job.right());
    npushmem_barrier_all();
    check.equal("the last byte", static_cast<char>('a' + job.left()), vast[sizeof vast - 1]);
}

// From variables into variables and the heap, and back, in pieces above every threshold.
void test_large(Checker& check, const Job& job) {
    std::iota(large_source, large_source + many, value(job.me, 0));
    auto* heap = static_cast<long*>(npushmem_malloc(sizeof large_source));
    npushmem_long_put(heap, large_source, many, job.right());
    npushmem_long_put(large_dest, large_source, many, job.right());
    npushmem_barrier_all();
    check.that("from variables into the heap", std::equal(heap, heap + many, large_dest));
    check.equal("the last of many", value(job.left(), many - 1), large_dest[many - 1]);
    npushmem_long_get(large_dest + many, heap, many, job.right());
    check.that("from the heap into variables", std::equal(large_source, large_source + many, large_dest + many));
    npushmem_barrier_all();
    npushmem_free(heap);
}

void test_atomics(Checker& check, const Job& job) {
    static long sums[2];
    static std::int32_t words[3] = {-1, 7, -1};
    npushmem_barrier_all();
    for (int i = 0; i < 100; ++i) {
        npushmem_long_atomic_add(sums, 2, 0);
        (void)npushmem_long_atomic_fetch_inc(sums + 1, 0);
    }
    check.equal("a swap", 7, npushmem_int32_atomic_compare_swap(words + 1, 7, 8, job.right()));
    npushmem_barrier_all();
    if (job.me == 0) check.equal("a sum", 200L * job.npes, sums[0]);
    check.equal("a count", 100L * job.npes, npushmem_long_atomic_fetch(sums + 1, 0));
    check.that("a 32-bit swap leaves the neighbours", words[0] == -1 && words[1] == 8 && words[2] == -1);
    npushmem_barrier_all();
}

void test_waits(Checker& check, const Job& job) {
    static long flags[3];
    npushmem_long_put_signal(large_dest, large_source, many, &signal_word, 5, NPUSHMEM_SIGNAL_OP_ADD, job.right());
    check.equal("a signal", std::uint64_t{5}, npushmem_signal_wait_until(&signal_word, NPUSHMEM_CMP_GE, 5));
    check.equal("what came with it", value(job.left(), many - 1), large_dest[many - 1]);
    for (int i = 0; i < 3; ++i) npushmem_long_atomic_set(flags + i, 1, job.right());
    npushmem_long_wait_until(flags, NPUSHMEM_CMP_NE, 0);
    npushmem_long_wait_until_all(flags, 3, nullptr, NPUSHMEM_CMP_EQ, 1);
    check.equal("a test", 1, npushmem_long_test(flags + 2, NPUSHMEM_CMP_EQ, 1));
    npushmem_barrier_all();
}

void test_collectives(Checker& check, const Job& job) {
    const auto npes = static_cast<std::size_t>(job.npes);
    std::iota(large_source, large_source + many, value(job.me, 0));
    npushmem_long_broadcast(NPUSHMEM_TEAM_WORLD, large_dest, large_source, many, job.npes - 1);
    check.equal("broadcast", value(job.npes - 1, 17), large_dest[17]);
    npushmem_barrier_all();
    npushmem_long_fcollect(NPUSHMEM_TEAM_WORLD, large_dest, large_source, many);
    for (std::size_t pe = 0; pe < npes; ++pe)
        check.equal("fcollect", value(static_cast<int>(pe), 3), large_dest[pe * many + 3]);
    npushmem_barrier_all();
    npushmem_long_collect(NPUSHMEM_TEAM_WORLD, large_dest, large_source, static_cast<std::size_t>(job.me) + 1);
    check.equal("collect", value(job.npes - 1, 0), large_dest[npes * (npes - 1) / 2]);
    npushmem_barrier_all();
    npushmem_long_sum_reduce(NPUSHMEM_TEAM_WORLD, large_dest, large_source, many);
    check.equal("sum", 1000L * job.npes * (job.npes - 1) / 2 + 9L * job.npes, large_dest[9]);
    npushmem_barrier_all();
    npushmem_long_alltoall(NPUSHMEM_TEAM_WORLD, large_dest, large_source, 10);
    for (std::size_t pe = 0; pe < npes; ++pe)
        check.equal("alltoall", value(static_cast<int>(pe), static_cast<std::size_t>(job.me) * 10 + 4),
                    large_dest[pe * 10 + 4]);
    npushmem_barrier_all();
}

// As programs of the first versions are written: everything that is symmetric is static.
void test_active_sets(Checker& check, const Job& job) {
    std::fill(std::begin(psync), std::end(psync), NPUSHMEM_SYNC_VALUE);
    with_value[0] = job.me + 1;
    npushmem_barrier_all();
    const int size = (job.npes + 1) / 2;
    if (job.me % 2 == 0) {
        npushmem_long_sum_to_all(without_value, with_value, 1, 0, 1, size, pwork, psync);
        check.equal("the sum of every other PE", static_cast<long>(size) * size, without_value[0]);
    }
    npushmem_barrier_all();
}

void test_locks(Checker& check, const Job& job) {
    for (int i = 0; i < 20; ++i) {
        npushmem_set_lock(&lock);
        npushmem_long_p(&counter, npushmem_long_g(&counter, 0) + 1, 0);
        npushmem_clear_lock(&lock);
    }
    npushmem_barrier_all();
    check.equal("counted under a lock", 20L * job.npes, npushmem_long_g(&counter, 0));
    npushmem_barrier_all();
}

void test_teams(Checker& check, const Job& job) {
    npushmem_team_t team = NPUSHMEM_TEAM_INVALID;
    const int size = job.npes - job.npes / 2;
    npushmem_team_split_strided(NPUSHMEM_TEAM_WORLD, job.npes / 2, 1, size, nullptr, 0, &team);
    if (team != NPUSHMEM_TEAM_INVALID) {
        npushmem_ctx_t ctx = NPUSHMEM_CTX_INVALID;
        check.equal("a context", 0, npushmem_team_create_ctx(team, 0, &ctx));
        const int me = npushmem_team_my_pe(team);
        npushmem_ctx_long_p(ctx, with_value + 5, value(job.me, 5), (me + 1) % size);
        npushmem_ctx_quiet(ctx);
        npushmem_team_sync(team);
        check.equal("through a team's context", value(job.npes / 2 + (me + size - 1) % size, 5), with_value[5]);
        npushmem_ctx_destroy(ctx);
        npushmem_team_destroy(team);
    }
    npushmem_barrier_all();
}

void test_pointers(Checker& check, const Job& job) {
    check.that("one's own", npushmem_ptr(with_value + 1, job.me) == with_value + 1);
    check.equal("accessible", 1, npushmem_addr_accessible(with_value, job.right()));
    auto* theirs = static_cast<long*>(npushmem_ptr(with_value + 1, job.right()));
    with_value[1] = value(job.me, 1);
    npushmem_barrier_all();
    if (theirs != nullptr) check.equal("a load", value(job.right(), 1), *theirs);
    npushmem_barrier_all();
    if (theirs != nullptr) *theirs = value(job.me, 2);
    npushmem_barrier_all();
    if (theirs != nullptr) check.equal("a store", value(job.left(), 2), with_value[1]);
    check.no_error("pointers");
}

// A child has its own copy of the variables.
void test_fork(Checker& check, const Job& job) {
    static volatile pid_t child;
    with_value[3] = value(job.me, 3);
    npushmem_barrier_all();
    child = fork();
    if (child == 0) {
        const bool kept = with_value[3] == value(job.me, 3);
        with_value[3] = -1;
        without_value[3] = -1;
        _exit(kept ? 0 : 1);
    }
    int status = -1;
    check.equal("the child", static_cast<pid_t>(child), waitpid(child, &status, 0));
    check.equal("what the child found", 0, status);
    check.equal("what the child left", value(job.me, 3), with_value[3]);
    npushmem_long_p(without_value + 3, value(job.me, 4), job.right());
    npushmem_barrier_all();
    check.equal("put after the fork", value(job.left(), 4), without_value[3]);
    npushmem_barrier_all();
}

void test_mistakes(Checker& check, const Job& job) {
    long local[2] = {};
    const auto allocated = std::make_unique<long>();
    const auto refused = [&](const void* object, const char* why) {
        npushmem_putmem(const_cast<void*>(object), local, 8, job.right());
        check.failed_with(why, NPUSHMEM_E_NOT_SYMMETRIC,
                          {"npushmem_putmem", "is not symmetric", why, "npushmem_malloc", "global and static"});
    };
    refused(local, "lies on this thread's stack");
    refused(allocated.get(), "malloc");
    refused(constant, "is a constant of the executable");
    refused(of_thread, "thread_local");
    if (void* of_library = dlsym(RTLD_NEXT, "__libc_single_threaded")) refused(of_library, "belongs to the library");
    npushmem_long_put(with_value, local, sizeof vast, job.right());
    check.failed_with("too many", NPUSHMEM_E_RANGE, {"npushmem_long_put", "beyond the executable's variables"});
    npushmem_free(with_value);
    check.failed_with("free of a variable", NPUSHMEM_E_NOT_SYMMETRIC, {"npushmem_free"});
    check.equal("accessible", 0, npushmem_addr_accessible(local, job.right()));
    npushmem_long_atomic_inc(reinterpret_cast<long*>(reinterpret_cast<char*>(with_value) + 1), job.right());
    check.failed_with("not aligned", NPUSHMEM_E_ARGUMENT, {"npushmem_long_atomic_inc", "aligned"});
    npushmem_barrier_all();
}

}  // namespace
}  // namespace npushmem::api_test

int main() {
    using namespace npushmem::api_test;
    const int status = run_family("statics", [](Checker& check, const Job& job) {
        test_start(check);
        npushmem_barrier_all();
        test_rma(check, job);
        test_large(check, job);
        test_atomics(check, job);
        test_waits(check, job);
        test_collectives(check, job);
        test_active_sets(check, job);
        test_locks(check, job);
        test_teams(check, job);
        test_pointers(check, job);
        test_fork(check, job);
        check.no_error("before the mistakes");
        test_mistakes(check, job);
        with_value[7] = 77;
    });
    // The variables keep their values after finalize, and the library may be initialised again.
    if (with_value[7] != 77) return 1;
    with_value[8] = 88;
    return status != 0 ? status : run_family("statics again", [](Checker& check, const Job& job) {
        check.equal("across the library's lives", 88L, with_value[8]);
        npushmem_barrier_all();
        npushmem_long_p(with_value + 8, value(job.me, 8), job.right());
        npushmem_barrier_all();
        check.equal("in the second life", value(job.left(), 8), with_value[8]);
    });
}
