// SPDX-License-Identifier: BSD-3-Clause
// A forked child of a PE is not a PE: each of its calls fails with the reason, and none waits. Its end by exit or exec
// does not disturb the PEs.
#include <sys/wait.h>
#include <unistd.h>

#include <cstdlib>

#include "npushmem.h"
#include "npushmem/plugin/abi.h"
#include "npushmemx.h"
#include "tests/integration/api/programs/checker.hpp"

namespace npushmem::api_test {
namespace {

constexpr unsigned longest_seconds = 120;  // the test kills a child that waits longer

// Objects that the parent created before the fork.
struct Made {
    long* words;
    std::uint64_t* signal;
    npushmem_ctx_t ctx;
    npushmem_team_t team;
    npushmemx_stream_t stream;
};

void call_data_functions(Checker& check, const Job& job, const Made& made) {
    const auto failed = [&](const char* what) {
        check.failed_with(what, NPUSHMEM_E_NOT_INITIALIZED, {what, "was made by fork", "process"});
    };
    long here[2] = {};
    npushmem_long_p(made.words, 1, job.right());
    failed("npushmem_long_p");
    check.equal("g", 0L, npushmem_long_g(made.words, job.right()));
    failed("npushmem_long_g");
    npushmem_long_put_nbi(made.words, here, 2, job.right());
    failed("npushmem_long_put_nbi");
    npushmem_getmem(here, made.words, sizeof here, job.right());
    failed("npushmem_getmem");
    npushmem_ctx_long_p(made.ctx, made.words, 1, job.right());
    failed("npushmem_ctx_long_p");
    npushmem_long_put_signal(made.words, here, 1, made.signal, 1, NPUSHMEM_SIGNAL_OP_SET, job.right());
    failed("npushmem_long_put_signal");
    npushmem_long_atomic_add(made.words, 1, job.right());
    failed("npushmem_long_atomic_add");
    npushmem_long_wait_until(made.words, NPUSHMEM_CMP_EQ, 77);
    failed("npushmem_long_wait_until");
    check.equal("test", 0, npushmem_long_test(made.words, NPUSHMEM_CMP_EQ, 77));
    failed("npushmem_long_test");
    npushmem_fence();
    failed("npushmem_fence");
    npushmem_quiet();
    failed("npushmem_quiet");
    npushmem_ctx_quiet(made.ctx);
    failed("npushmem_ctx_quiet");
    check.that("ptr", npushmem_ptr(made.words, job.right()) == nullptr);
    failed("npushmem_ptr");
}

void call_collective_functions(Checker& check, const Made& made) {
    const auto failed = [&](const char* what) {
        check.failed_with(what, NPUSHMEM_E_NOT_INITIALIZED, {what, "was made by fork"});
    };
    npushmem_barrier_all();
    failed("npushmem_barrier_all");
    npushmem_sync_all();
    failed("npushmem_sync_all");
    check.that("malloc", npushmem_malloc(64) == nullptr);
    failed("npushmem_malloc");
    npushmem_free(made.words);
    failed("npushmem_free");
    check.that("team_sync", npushmem_team_sync(made.team) != 0);
    failed("npushmem_team_sync");
    check.that("broadcast", npushmem_long_broadcast(made.team, made.words, made.words + 1, 1, 0) != 0);
    failed("npushmem_long_broadcast");
    npushmem_team_destroy(made.team);
    failed("npushmem_team_destroy");
    npushmem_ctx_t ctx = NPUSHMEM_CTX_INVALID;
    check.that("ctx_create", npushmem_ctx_create(0, &ctx) != 0);
    failed("npushmem_ctx_create");
    npushmem_ctx_destroy(made.ctx);
    failed("npushmem_ctx_destroy");
    check.that("barrier_all_on_stream", npushmemx_barrier_all_on_stream(made.stream) != 0);
    failed("npushmemx_barrier_all_on_stream");
    check.that("stream_synchronize", npushmemx_stream_synchronize(made.stream) != 0);
    failed("npushmemx_stream_synchronize");
    npushmem_set_lock(made.words);
    failed("npushmem_set_lock");
}

void call_start_and_end(Checker& check) {
    const auto failed = [&](const char* what) {
        check.failed_with(what, NPUSHMEM_E_NOT_INITIALIZED, {what, "was made by fork"});
    };
    int up = -1;
    npushmem_query_initialized(&up);
    check.equal("query_initialized", 0, up);
    check.equal("my_pe", -1, npushmem_my_pe());
    failed("npushmem_my_pe");
    npushmem_init();
    failed("npushmem_init");
    check.that("init_thread", npushmem_init_thread(NPUSHMEM_THREAD_SINGLE, nullptr) != 0);
    failed("npushmem_init_thread");
    npushmem_finalize();
    failed("npushmem_finalize");
}

// Forks a child that ends by `end`; its status encodes its result.
template <class Body>
pid_t make_child(const Body& body) {
    const pid_t child = ::fork();
    if (child != 0) return child;
    ::alarm(longest_seconds);
    Checker check("forks, child");
    body(check);
    std::exit(check.exit_status());
}

void expect_good_end(Checker& check, const char* what, pid_t child) {
    int status = -1;
    check.equal(what, child, ::waitpid(child, &status, 0));
    check.equal(what, 0, status);
}

// Every PE sends to its right neighbour, by several operations.
void test_job(Checker& check, const Job& job, const Made& made, long round) {
    npushmem_long_p(made.words, round * 100 + job.me, job.right());
    npushmem_ctx_long_p(made.ctx, made.words + 1, round * 100 + job.me, job.right());
    npushmem_ctx_quiet(made.ctx);
    npushmem_barrier_all();
    check.equal("put", round * 100 + job.left(), made.words[0]);
    check.equal("put on a context", round * 100 + job.left(), made.words[1]);
    check.equal("barrier on a stream", 0, npushmemx_barrier_all_on_stream(made.stream));
    check.equal("synchronize", 0, npushmemx_stream_synchronize(made.stream));
    npushmem_team_sync(made.team);
    npushmem_barrier_all();
    check.no_error("the PEs");
}

void test_forks(Checker& check, const Job& job) {
    Made made{};
    made.words = static_cast<long*>(npushmem_calloc(4, sizeof(long)));
    made.signal = static_cast<std::uint64_t*>(npushmem_calloc(1, sizeof(std::uint64_t)));
    check.equal("ctx_create", 0, npushmem_ctx_create(0, &made.ctx));
    check.equal("split", 0, npushmem_team_split_strided(NPUSHMEM_TEAM_WORLD, 0, 1, job.npes, nullptr, 0, &made.team));
    check.equal("stream_create", 0, npushmemx_stream_create(&made.stream));
    test_job(check, job, made, 1);

    const pid_t calling = make_child([&](Checker& mine) {
        call_data_functions(mine, job, made);
        call_collective_functions(mine, made);
        call_start_and_end(mine);
        // A grandchild is not a PE either.
        expect_good_end(mine, "a child's child", make_child([&](Checker& inner) {
                            call_data_functions(inner, job, made);
                            call_start_and_end(inner);
                        }));
    });
    test_job(check, job, made, 2);
    expect_good_end(check, "the child that calls", calling);
    test_job(check, job, made, 3);

    expect_good_end(check, "the child that only ends", make_child([](Checker&) {}));
    expect_good_end(check, "the child that becomes a program",
                    make_child([](Checker& mine) { mine.that("exec", ::execl("/bin/true", "true", nullptr) == 0); }));
    test_job(check, job, made, 4);
    npushmemx_stream_destroy(made.stream);
    npushmem_team_destroy(made.team);
    npushmem_ctx_destroy(made.ctx);
    npushmem_free(made.signal);
    npushmem_free(made.words);
}

// The start of the library is for processes without one, whatever their parents did before and after.
void test_fork_before_start(Checker& check) {
    expect_good_end(check, "a child before init", make_child([](Checker& mine) {
                        (void)npushmem_my_pe();
                        mine.failed_with("my_pe", NPUSHMEM_E_NOT_INITIALIZED, {"call npushmem_init first"});
                    }));
}

}  // namespace
}  // namespace npushmem::api_test

int main() {
    using namespace npushmem::api_test;
    Checker before("forks, before init");
    test_fork_before_start(before);
    const int status = run_family("forks", test_forks);
    test_fork_before_start(before);
    return status != 0 ? status : before.exit_status();
}
