// SPDX-License-Identifier: BSD-3-Clause
// Start and end: calls before init and after finalize, nested init, repeated init, thread levels, versions, and queries
// about PEs and addresses.
#include <cstring>
#include <string>

#include "npushmem.h"
#include "npushmem/plugin/abi.h"
#include "npushmemx.h"
#include "tests/integration/api/programs/checker.hpp"

namespace npushmem::api_test {
namespace {

int initialized() {
    int answer = -1;
    npushmem_query_initialized(&answer);
    return answer;
}

// Every call that needs the library reports this and has no effect.
void test_not_running(Checker& check, const char* when) {
    const auto refused = [&](const char* what) {
        check.failed_with(fmt::format("{} {}", what, when), NPUSHMEM_E_NOT_INITIALIZED, {what, "npushmem_init"});
    };
    long word = 3;
    std::uint64_t signal = 4;
    check.equal(when, 0, initialized());
    check.equal("my_pe", -1, npushmem_my_pe());
    refused("npushmem_my_pe");
    check.equal("n_pes", -1, npushmem_n_pes());
    refused("npushmem_n_pes");
    check.that("malloc", npushmem_malloc(8) == nullptr);
    refused("npushmem_malloc");
    check.that("calloc", npushmem_calloc(1, 8) == nullptr);
    refused("npushmem_calloc");
    npushmem_free(&word);
    refused("npushmem_free");
    check.that("ptr", npushmem_ptr(&word, 0) == nullptr);
    refused("npushmem_ptr");
    npushmem_long_p(&word, 1, 0);
    refused("npushmem_long_p");
    check.equal("g", 0L, npushmem_long_g(&word, 0));
    refused("npushmem_long_g");
    npushmem_long_put(&word, &word, 1, 0);
    refused("npushmem_long_put");
    npushmem_long_iput(&word, &word, 1, 1, 1, 0);
    refused("npushmem_long_iput");
    npushmem_long_atomic_inc(&word, 0);
    refused("npushmem_long_atomic_inc");
    npushmem_long_wait_until(&word, NPUSHMEM_CMP_EQ, 3);
    refused("npushmem_long_wait_until");
    check.equal("test", 0, npushmem_long_test(&word, NPUSHMEM_CMP_EQ, 3));
    refused("npushmem_long_test");
    npushmem_signal_set(&signal, 1, 0);
    refused("npushmem_signal_set");
    npushmem_fence();
    refused("npushmem_fence");
    npushmem_quiet();
    refused("npushmem_quiet");
    npushmem_barrier_all();
    refused("npushmem_barrier_all");
    npushmem_sync_all();
    refused("npushmem_sync_all");
    npushmem_finalize();
    refused("npushmem_finalize");
    check.equal("words of refused calls", 7L, word + static_cast<long>(signal));
    check.equal("pe_accessible", 0, npushmem_pe_accessible(0));
    check.equal("addr_accessible", 0, npushmem_addr_accessible(&word, 0));
    check.equal("describe_job", std::string(), std::string(npushmemx_describe_job()));
}

void test_versions(Checker& check) {
    int major = -1;
    int minor = -1;
    int patch = -1;
    npushmem_info_get_version(&major, &minor);
    check.equal("version of the interface", fmt::format("{}.{}", NPUSHMEM_MAJOR_VERSION, NPUSHMEM_MINOR_VERSION),
                fmt::format("{}.{}", major, minor));
    char name[NPUSHMEM_MAX_NAME_LEN];
    std::memset(name, 'x', sizeof name);
    npushmem_info_get_name(name);
    check.that("the name is terminated", std::memchr(name, '\0', sizeof name) != nullptr);
    check.equal("the name", std::string(NPUSHMEM_VENDOR_STRING), std::string(name));
    npushmemx_vendor_get_version_info(&major, &minor, &patch);
    check.equal("version of the library",
                fmt::format("{}.{}.{}", NPUSHMEMX_VERSION_MAJOR, NPUSHMEMX_VERSION_MINOR, NPUSHMEMX_VERSION_PATCH),
                fmt::format("{}.{}.{}", major, minor, patch));
    check.no_error("versions");
}

void test_wrong_attributes(Checker& check) {
    npushmemx_init_attr_t attr = NPUSHMEMX_INIT_ATTR_INITIALIZER;
    npushmemx_uniqueid_t id{};
    const auto refused = [&](const char* what, int expected, int code, std::initializer_list<std::string_view> words) {
        check.equal(what, expected, code);
        check.failed_with(what, expected, words);
        check.equal("initialised after a refused init", 0, initialized());
    };
    refused("a thread level that does not exist", NPUSHMEM_E_ARGUMENT, npushmem_init_thread(17, nullptr), {"17"});
    refused("headers newer than the library", NPUSHMEM_E_MISMATCH,
            npushmemx_init_thread_from(NPUSHMEM_THREAD_SINGLE, nullptr, NPUSHMEMX_VERSION_MAJOR,
                                       NPUSHMEMX_VERSION_MINOR + 1, 0),
            {fmt::format("compiled with npushmem {}.{}.0", NPUSHMEMX_VERSION_MAJOR, NPUSHMEMX_VERSION_MINOR + 1)});
    refused("no id", NPUSHMEM_E_ARGUMENT, npushmemx_set_attr_uniqueid_args(0, 1, nullptr, &attr), {"NULL"});
    refused("no attr", NPUSHMEM_E_ARGUMENT, npushmemx_set_attr_uniqueid_args(0, 1, &id, nullptr), {"NULL"});
    refused("a rank outside", NPUSHMEM_E_RANGE, npushmemx_set_attr_uniqueid_args(3, 3, &id, &attr), {"3"});
    refused("no ranks", NPUSHMEM_E_RANGE, npushmemx_set_attr_uniqueid_args(0, 0, &id, &attr), {"0"});
    refused("no attr for init", NPUSHMEM_E_ARGUMENT, npushmemx_init_attr(NPUSHMEMX_INIT_WITH_UNIQUEID, nullptr),
            {"NULL"});
    refused("attr without rank", NPUSHMEM_E_ARGUMENT, npushmemx_init_attr(NPUSHMEMX_INIT_WITH_UNIQUEID, &attr),
            {"set_attr_uniqueid_args"});
    refused("unknown flags", NPUSHMEM_E_ARGUMENT, npushmemx_init_attr(64, &attr), {"0x40"});
    refused("two ways to start", NPUSHMEM_E_ARGUMENT,
            npushmemx_init_attr(NPUSHMEMX_INIT_WITH_UNIQUEID | NPUSHMEMX_INIT_WITH_SHMEM, &attr), {"0x5"});
    refused("no communicator", NPUSHMEM_E_ARGUMENT, npushmemx_init_attr(NPUSHMEMX_INIT_WITH_MPI_COMM, &attr),
            {"communicator"});
    refused("nowhere to put an id", NPUSHMEM_E_ARGUMENT, npushmemx_get_uniqueid(nullptr), {"NULL"});
    attr.version_major = NPUSHMEMX_VERSION_MAJOR + 1;
    refused("a program of a newer version", NPUSHMEM_E_MISMATCH, npushmemx_init_attr(0, &attr),
            {"compiled with", fmt::format("{}.", NPUSHMEMX_VERSION_MAJOR + 1)});
}

void test_questions(Checker& check, const Job& job) {
    auto* words = static_cast<long*>(npushmem_malloc(2 * sizeof(long)));
    words[0] = 10 + job.me;
    npushmem_barrier_all();
    for (int pe = 0; pe < job.npes; ++pe) {
        check.equal("pe_accessible", 1, npushmem_pe_accessible(pe));
        check.equal("addr_accessible", 1, npushmem_addr_accessible(words + 1, pe));
        const auto* there = static_cast<const long*>(npushmem_ptr(words, pe));
        if (there != nullptr) check.equal(fmt::format("load from PE {}", pe), 10L + pe, *there);
    }
    check.that("the own object through ptr",
               npushmem_ptr(words, job.me) == words || npushmem_ptr(words, job.me) == nullptr);
    const std::string map = npushmemx_describe_map();
    check.that("describe_map names the last PE: " + map, map.find(std::to_string(job.npes - 1)) != std::string::npos);
    const std::string text = npushmemx_describe_job();
    check.that("describe_job has the number of PEs: " + text,
               text.find(fmt::format("{} PEs", job.npes)) != std::string::npos);
    npushmem_barrier_all();
    npushmem_free(words);
    check.no_error("questions");
}

// One init and finalize: puts arrive.
void test_ring(Checker& check, const Job& job, int round) {
    auto* word = static_cast<int*>(npushmem_calloc(1, sizeof(int)));
    npushmem_int_p(word, round * 100 + job.me, job.right());
    npushmem_barrier_all();
    check.equal("value of the left PE", round * 100 + job.left(), *word);
    npushmem_free(word);
}

void test_levels(Checker& check, int requested, int provided) {
    check.equal("thread level", requested, provided);
    int queried = -1;
    npushmem_query_thread(&queried);
    check.equal("query_thread", provided, queried);
}

// The library counts nested inits; the last finalize ends it.
void test_nested(Checker& check) {
    (npushmem_init)();  // the function itself, not the macro
    check.equal("nested init_attr", 0, npushmemx_init_attr(0, nullptr));
    npushmem_finalize();
    check.equal("after the first finalize of three", 1, initialized());
    npushmem_finalize();
    check.equal("after the second finalize of three", 1, initialized());
    npushmem_barrier_all();
    check.no_error("nested init");
}

int run() {
    Checker check("setup");
    test_versions(check);
    test_wrong_attributes(check);
    test_not_running(check, "before init");
    for (int level = NPUSHMEM_THREAD_SINGLE; level <= NPUSHMEM_THREAD_MULTIPLE; ++level) {
        int provided = -1;
        if (npushmem_init_thread(level, &provided) != 0) {
            check.fail(fmt::format("init {} failed", level + 1));
            return check.exit_status();
        }
        const Job job{npushmem_my_pe(), npushmem_n_pes()};
        check.set_pe(job.me);
        check.equal("after init", 1, initialized());
        test_levels(check, level, provided);
        test_versions(check);
        test_questions(check, job);
        test_nested(check);
        test_ring(check, job, level);
        npushmem_finalize();
        check.no_error("finalize");
        test_not_running(check, "after finalize");
    }
    return check.exit_status();
}

}  // namespace
}  // namespace npushmem::api_test

int main() { return npushmem::api_test::run(); }
