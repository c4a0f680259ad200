// SPDX-License-Identifier: BSD-3-Clause
// NPUSHMEM_CHECK=1: errors that an unchecked run accepts or hangs in. Every PE that can detect one reports the
// function, the argument, the PE and the value; the call has no effect, and the library keeps working.
#include <array>
#include <cstdlib>
#include <thread>
#include <vector>

#include "npushmem.h"
#include "npushmem/plugin/abi.h"
#include "tests/integration/api/programs/checker.hpp"

namespace npushmem::api_test {
namespace {

struct Scene {
    Checker& check;
    const Job& job;
    long* words;   // symmetric, of `count` elements
    long* others;  // the same
    long local[4];
    static constexpr std::size_t count = 32;

    // The call has failed on every PE; afterwards all pass a barrier.
    void failed(const char* what, int code, std::initializer_list<std::string_view> words_of_it) {
        check.failed_with(what, code, words_of_it);
    }
    void still_usable(const char* after) {
        npushmem_barrier_all();
        npushmem_long_p(words, job.me + 7L, job.right());
        npushmem_barrier_all();
        check.equal(fmt::format("word after {}", after), job.left() + 7L, words[0]);
        check.no_error(after);
        npushmem_barrier_all();
    }
};

// Every kind of access to one object. Each must fail with these words.
void touch(Scene& s, long* object, int code, const std::string& word) {
    const std::string pe = fmt::format("PE {}", s.job.right());
    const auto failed = [&](const char* what) { s.failed(what, code, {what, word, pe}); };
    const int right = s.job.right();
    npushmem_long_p(object, 1, right);
    failed("npushmem_long_p");
    (void)npushmem_long_g(object, right);
    failed("npushmem_long_g");
    npushmem_long_put(object, s.local, 1, right);
    failed("npushmem_long_put");
    npushmem_getmem(s.local, object, 8, right);
    failed("npushmem_getmem");
    npushmem_long_put_nbi(object, s.local, 1, right);
    failed("npushmem_long_put_nbi");
    npushmem_long_iput(object, s.local, 1, 1, 1, right);
    failed("npushmem_long_iput");
    (void)npushmem_long_atomic_fetch_add(object, 1, right);
    failed("npushmem_long_atomic_fetch_add");
    npushmem_long_atomic_inc(object, right);
    failed("npushmem_long_atomic_inc");
    npushmem_long_put_signal(s.words, s.local, 1, reinterpret_cast<std::uint64_t*>(object), 1, NPUSHMEM_SIGNAL_OP_SET,
                             right);
    failed("npushmem_long_put_signal");
}

void touch_here(Scene& s, long* object, const char* word) {
    (void)npushmem_long_test(object, NPUSHMEM_CMP_EQ, 1);
    s.failed("npushmem_long_test", NPUSHMEM_E_ARGUMENT, {"npushmem_long_test", word});
    npushmem_long_wait_until(object, NPUSHMEM_CMP_EQ, 1);
    s.failed("npushmem_long_wait_until", NPUSHMEM_E_ARGUMENT, {"npushmem_long_wait_until", word});
    npushmem_set_lock(object);
    s.failed("npushmem_set_lock", NPUSHMEM_E_ARGUMENT, {"npushmem_set_lock", word});
    s.check.that("npushmem_ptr of it", npushmem_ptr(object, s.job.right()) == nullptr);
    s.failed("npushmem_ptr", NPUSHMEM_E_ARGUMENT, {"npushmem_ptr", word});
}

void test_objects(Scene& s) {
    auto* freed = static_cast<long*>(npushmem_malloc(192));
    npushmem_free(freed);
    touch(s, freed + 3, NPUSHMEM_E_ARGUMENT, "in an object of 192 bytes that has been freed");
    touch_here(s, freed, "has been freed");
    touch(s, freed + 4096, NPUSHMEM_E_ARGUMENT, "in no object from npushmem_malloc");
    npushmem_putmem(s.words + Scene::count - 2, s.local, 32, s.job.right());
    s.failed("a put beyond the object", NPUSHMEM_E_RANGE, {"npushmem_putmem", "dest", "32 bytes", "16 bytes beyond"});
    npushmem_getmem(s.local, s.words + Scene::count - 1, 24, s.job.right());
    s.failed("a get beyond the object", NPUSHMEM_E_RANGE, {"npushmem_getmem", "source", "16 bytes beyond"});
    // Memory that is allocated again is valid again.
    auto* again = static_cast<long*>(npushmem_malloc(192));
    npushmem_long_p(again + 3, 1, s.job.right());
    s.check.no_error("memory that is used again");
    auto* larger = static_cast<long*>(npushmem_realloc(again, 4096));
    npushmem_long_p(larger + 500, 1, s.job.right());
    s.check.no_error("memory that has grown");
    npushmem_free(larger);
    s.still_usable("objects");
}

void test_overlap(Scene& s) {
    npushmem_putmem(s.words, s.words + 1, 16, s.job.me);
    s.failed("a put onto itself", NPUSHMEM_E_ARGUMENT, {"npushmem_putmem", "dest", "source", "overlap in 8 bytes"});
    npushmem_getmem(s.words + 1, s.words, 24, s.job.me);
    s.failed("a get onto itself", NPUSHMEM_E_ARGUMENT, {"npushmem_getmem", "overlap in 16 bytes"});
    npushmem_long_broadcast(NPUSHMEM_TEAM_WORLD, s.words, s.words + 1, 2, 0);
    s.failed("broadcast", NPUSHMEM_E_ARGUMENT, {"npushmem_long_broadcast", "overlap in 8 bytes"});
    npushmem_long_sum_reduce(NPUSHMEM_TEAM_WORLD, s.words + 1, s.words, 2);
    s.failed("sum_reduce", NPUSHMEM_E_ARGUMENT, {"npushmem_long_sum_reduce", "overlap"});
    s.check.equal("in place", 0, npushmem_long_sum_reduce(NPUSHMEM_TEAM_WORLD, s.words, s.words, 2));
    if (s.job.npes > 1) npushmem_putmem(s.words, s.words, 16, s.job.right());
    s.check.no_error("in place");
    s.still_usable("overlap");
}

void test_misuse(Scene& s) {
    const auto& [me, npes] = s.job;
    npushmem_long_p(s.words, 1, npes);
    s.failed("a PE too high", NPUSHMEM_E_RANGE, {"npushmem_long_p", fmt::format("PE {}", npes)});
    auto* crooked = reinterpret_cast<long*>(reinterpret_cast<char*>(s.words) + 4);
    npushmem_long_atomic_inc(crooked, s.job.right());
    s.failed("a crooked atomic", NPUSHMEM_E_ARGUMENT, {"npushmem_long_atomic_inc", "not aligned", "8 bytes"});
    npushmem_long_p(s.local, 1, me);
    s.failed("local memory", NPUSHMEM_E_NOT_SYMMETRIC, {"npushmem_long_p", "dest"});
    npushmem_ctx_t ctx = NPUSHMEM_CTX_INVALID;
    npushmem_ctx_create(0, &ctx);
    npushmem_ctx_long_p(ctx, s.words + 1, 5, s.job.right());
    s.check.no_error("a context that lives");
    npushmem_ctx_destroy(ctx);
    npushmem_ctx_long_p(ctx, s.words, 1, s.job.right());
    s.failed("a destroyed context", NPUSHMEM_E_ARGUMENT,
             {"npushmem_ctx_long_p", "the context 0x", "has been destroyed"});
    (void)npushmem_ctx_long_atomic_fetch(ctx, s.words, s.job.right());
    s.failed("a destroyed context", NPUSHMEM_E_ARGUMENT, {"npushmem_ctx_long_atomic_fetch", "destroyed"});
    npushmem_ctx_destroy(ctx);
    s.failed("a second destroy", NPUSHMEM_E_ARGUMENT, {"npushmem_ctx_destroy", "has been destroyed"});
    s.still_usable("misuse");
}

// The result of another thread that uses the context while this thread waits.
void fails_on_other_thread(Scene& s, const char* what, npushmem_ctx_t ctx) {
    std::thread([&] {
        npushmem_ctx_long_p(ctx, s.words, 1, s.job.right());
        s.failed(what, NPUSHMEM_E_ARGUMENT,
                 {"npushmem_ctx_long_p", "NPUSHMEM_CTX_PRIVATE", "another thread", fmt::format("on PE {}", s.job.me)});
        npushmem_ctx_quiet(ctx);
        s.failed(what, NPUSHMEM_E_ARGUMENT, {"npushmem_ctx_quiet", "NPUSHMEM_CTX_PRIVATE"});
    }).join();
}

// Threads that take turns may use a serialized context. The detection of concurrent use depends on timing, so
// tests/unit/core/api/contexts_test.cpp tests it.
void test_promises(Scene& s) {
    npushmem_ctx_t ctx = NPUSHMEM_CTX_INVALID;
    npushmem_ctx_create(NPUSHMEM_CTX_PRIVATE, &ctx);
    npushmem_ctx_long_p(ctx, s.words + 1, 5, s.job.right());
    npushmem_ctx_quiet(ctx);
    s.check.no_error("a private context of this thread");
    fails_on_other_thread(s, "a private context of another thread", ctx);
    npushmem_ctx_destroy(ctx);
    for (const long options : {NPUSHMEM_CTX_SERIALIZED, NPUSHMEM_CTX_NOSTORE, 0L}) {
        npushmem_ctx_create(options, &ctx);
        std::thread([&] {
            npushmem_ctx_long_p(ctx, s.words + 1, 5, s.job.right());
            npushmem_ctx_quiet(ctx);
            s.check.no_error("a context that threads take turns with");
        }).join();
        npushmem_ctx_destroy(ctx);
    }
    s.check.no_error("promises that are kept");
    s.still_usable("promises");
}

void test_teams(Scene& s) {
    std::array<npushmem_team_t, 2> teams{};
    npushmem_team_split_strided(NPUSHMEM_TEAM_WORLD, 0, 1, s.job.npes, nullptr, 0, &teams[0]);
    npushmem_team_destroy(teams[0]);
    npushmem_team_split_strided(NPUSHMEM_TEAM_WORLD, 0, 1, s.job.npes, nullptr, 0, &teams[1]);  // the same place
    npushmem_team_sync(teams[0]);
    s.failed("a stale team", NPUSHMEM_E_ARGUMENT, {"npushmem_team_sync", "has been destroyed"});
    npushmem_long_broadcast(teams[0], s.words, s.others, 1, 0);
    s.failed("a stale team", NPUSHMEM_E_ARGUMENT, {"npushmem_long_broadcast", "has been destroyed"});
    npushmem_team_destroy(teams[0]);
    s.failed("a stale team", NPUSHMEM_E_ARGUMENT, {"npushmem_team_destroy", "has been destroyed"});
    s.check.equal("its successor", 0, npushmem_team_sync(teams[1]));
    // A handle from another PE, which is a member of more teams.
    npushmem_long_max_reduce(reinterpret_cast<npushmem_team_t>(reinterpret_cast<std::uintptr_t>(teams[1]) + (5U << 16)),
                             s.words, s.others, 1);
    s.failed("another PE's team", NPUSHMEM_E_ARGUMENT, {"npushmem_long_max_reduce", "does not exist on PE"});
    npushmem_team_destroy(teams[1]);
    s.still_usable("teams");
}

// Arguments that differ between PE 0 and the others.
void test_differences(Scene& s) {
    const bool first = s.job.me == 0;
    const int last = s.job.npes - 1;
    const auto differs = [&](const char* what, std::initializer_list<std::string_view> words) {
        s.failed(what, NPUSHMEM_E_MISMATCH, words);
        npushmem_barrier_all();
        s.check.no_error(what);
    };
    npushmem_long_broadcast(NPUSHMEM_TEAM_WORLD, s.words, s.others, 1, first ? 0 : last);
    differs("root", {"npushmem_long_broadcast", "root is 0 on PE 0", "on PE 1 of the team world"});
    npushmem_long_sum_reduce(NPUSHMEM_TEAM_WORLD, s.words, s.others, first ? 1 : 2);
    differs("count", {"npushmem_long_sum_reduce", "count is 1 on PE 0 and 2 on PE 1"});
    npushmem_long_fcollect(NPUSHMEM_TEAM_WORLD, first ? s.words : s.words + 1, s.others, 1);
    differs("dest", {"npushmem_long_fcollect", "dest is offset"});
    first ? npushmem_long_sum_reduce(NPUSHMEM_TEAM_WORLD, s.words, s.others, 1)
          : npushmem_long_max_reduce(NPUSHMEM_TEAM_WORLD, s.words, s.others, 1);
    differs("operation", {"the function is npushmem_long_sum_reduce on PE 0 and npushmem_long_max_reduce on PE 1"});
    first ? npushmem_int_sum_reduce(NPUSHMEM_TEAM_WORLD, reinterpret_cast<int*>(s.words),
                                    reinterpret_cast<int*>(s.others), 2)
          : npushmem_long_sum_reduce(NPUSHMEM_TEAM_WORLD, s.words, s.others, 2);
    differs("type", {"npushmem_int_sum_reduce on PE 0", "npushmem_long_sum_reduce on PE 1"});
    npushmem_alltoallsmem(NPUSHMEM_TEAM_WORLD, s.words, s.others, 1, first ? 1 : 2, 1);
    differs("stride", {"npushmem_alltoallsmem", "sst is 1 on PE 0 and 2 on PE 1"});
    first ? npushmem_barrier_all() : npushmem_sync_all();
    differs("meeting", {"npushmem_barrier_all on PE 0", "npushmem_sync_all on PE 1"});
    void* object = first ? npushmem_malloc(64) : nullptr;
    if (!first) npushmem_barrier_all();
    s.check.that("malloc that failed", object == nullptr);
    differs("malloc", {"npushmem_malloc or a related function on PE 0", "npushmem_barrier_all on PE 1"});
    first ? (void)npushmem_team_sync(NPUSHMEM_TEAM_WORLD) : npushmem_free(s.words);
    differs("free", {"npushmem_team_sync on PE 0", "npushmem_malloc or a related function on PE 1"});
    npushmem_long_sum_reduce(NPUSHMEM_TEAM_WORLD, first ? s.local : s.words, s.others, 1);
    if (first) s.failed("the refusal", NPUSHMEM_E_NOT_SYMMETRIC, {"npushmem_long_sum_reduce", "dest"});
    if (!first) s.failed("another's refusal", NPUSHMEM_E_MISMATCH, {"npushmem_long_sum_reduce", "dest is offset"});
    s.still_usable("differences");
}

// In a team, with the team's PE numbers, and over an active set.
void test_differences_in_teams(Scene& s) {
    npushmem_team_t team = NPUSHMEM_TEAM_INVALID;
    npushmem_team_split_strided(NPUSHMEM_TEAM_WORLD, 1, 1, s.job.npes - 1, nullptr, 0, &team);
    if (team != NPUSHMEM_TEAM_INVALID) {
        const int index = npushmem_team_my_pe(team);
        npushmem_long_collect(team, s.words, s.others, static_cast<std::size_t>(index % 2));
        s.check.no_error("collect of different counts");
        npushmem_team_sync(team);
        npushmem_long_broadcast(team, s.words, s.others, 1, index == 0 ? 0 : 1);
        s.failed("root of a team", NPUSHMEM_E_MISMATCH, {"root is 0 on PE 0 and 1 on PE 1 of the team of PEs 1 to"});
        npushmem_team_destroy(team);
    }
    auto* sync = static_cast<long*>(npushmem_calloc(NPUSHMEM_SYNC_SIZE, sizeof(long)));
    npushmem_broadcast64(s.words, s.others, 1, s.job.me == 0 ? 0 : 1, 0, 0, s.job.npes, sync);
    s.failed("root of an active set", NPUSHMEM_E_MISMATCH, {"npushmem_broadcast64", "root is 0 on PE 0"});
    npushmem_barrier_all();
    npushmem_free(sync);
    s.still_usable("teams");
}

void test_checks(Checker& check, const Job& job) {
    Scene scene{check,
                job,
                static_cast<long*>(npushmem_calloc(Scene::count, sizeof(long))),
                static_cast<long*>(npushmem_calloc(Scene::count, sizeof(long))),
                {}};
    if (!check.that("memory", scene.words != nullptr && scene.others != nullptr)) return;
    test_objects(scene);
    test_overlap(scene);
    test_misuse(scene);
    test_promises(scene);
    test_teams(scene);
    if (job.npes > 1) test_differences(scene);
    if (job.npes > 2) test_differences_in_teams(scene);
    npushmem_free(scene.others);
    npushmem_free(scene.words);
    check.no_error("the end");
}

}  // namespace
}  // namespace npushmem::api_test

int main() {
    ::setenv("NPUSHMEM_CHECK", "1", 1);
    return npushmem::api_test::run_family("checks", npushmem::api_test::test_checks);
}
