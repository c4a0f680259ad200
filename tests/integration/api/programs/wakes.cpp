// SPDX-License-Identifier: BSD-3-Clause
// Every function that stores one element wakes the PE that sleeps until it is stored. Three PEs that map each other.
//
// PE 2 waits. PE 0 stores when it sees in PE 2's slice that PE 2 sleeps, and then counts the wake-ups there. PE 2 may
// find the store by itself just before; then PE 0 repeats.
#include <sched.h>

#include <cstdint>

#include "npushmem.h"
#include "npushmemx.h"
#include "tests/integration/api/programs/checker.hpp"
#include "tests/integration/api/programs/sleepers.hpp"

namespace npushmem::api_test {
namespace {

struct Words {
    std::uint64_t value;
    std::uint64_t pad[15];
    std::uint64_t array[4];
};

struct Store {
    const char* name;
    void (*to)(Words* words);
};

constexpr int waiting_pe = 2;
Words variable;
npushmem_ctx_t of_even_pes = NPUSHMEM_CTX_INVALID;  // where the waiting PE has the number 1
const std::uint64_t one[2] = {1, 0};
const Store stores[] = {
    {"p", [](Words* w) { npushmem_uint64_p(&w->value, 1, waiting_pe); }},
    {"put", [](Words* w) { npushmem_uint64_put(&w->value, one, 1, waiting_pe); }},
    {"put_nbi", [](Words* w) { npushmem_uint64_put_nbi(&w->value, one, 1, waiting_pe); }},
    {"putmem", [](Words* w) { npushmem_putmem(&w->value, one, sizeof one[0], waiting_pe); }},
    {"putmem of 4 bytes", [](Words* w) { npushmem_putmem(&w->value, one, 4, waiting_pe); }},
    {"putmem of 16 bytes", [](Words* w) { npushmem_putmem(&w->value, one, 16, waiting_pe); }},
    {"int p", [](Words* w) { npushmem_int_p(reinterpret_cast<int*>(&w->value), 1, waiting_pe); }},
    {"ctx p", [](Words* w) { npushmem_ctx_uint64_p(of_even_pes, &w->value, 1, 1); }},
    {"ctx put_signal",
     [](Words* w) {
         npushmem_ctx_uint64_put_signal(of_even_pes, w->array, one, 1, &w->value, 1, NPUSHMEM_SIGNAL_OP_SET, 1);
     }},
    {"ctx atomic_add", [](Words* w) { npushmem_ctx_uint64_atomic_add(of_even_pes, &w->value, 1, 1); }},
    {"iput", [](Words* w) { npushmem_uint64_iput(&w->value, one, 2, 1, 1, waiting_pe); }},
    {"ibput", [](Words* w) { npushmem_uint64_ibput(&w->value, one, 2, 1, 1, 1, waiting_pe); }},
    {"put_signal",
     [](Words* w) { npushmem_uint64_put_signal(w->array, one, 1, &w->value, 1, NPUSHMEM_SIGNAL_OP_SET, waiting_pe); }},
    {"put_signal_nbi",
     [](Words* w) {
         npushmem_uint64_put_signal_nbi(w->array, one, 1, &w->value, 1, NPUSHMEM_SIGNAL_OP_ADD, waiting_pe);
     }},
    {"signal_set", [](Words* w) { npushmem_signal_set(&w->value, 1, waiting_pe); }},
    {"signal_add", [](Words* w) { npushmem_signal_add(&w->value, 1, waiting_pe); }},
    {"signal_op", [](Words* w) { npushmemx_signal_op(&w->value, 1, NPUSHMEM_SIGNAL_OP_SET, waiting_pe); }},
    {"atomic_set", [](Words* w) { npushmem_uint64_atomic_set(&w->value, 1, waiting_pe); }},
    {"atomic_inc", [](Words* w) { npushmem_uint64_atomic_inc(&w->value, waiting_pe); }},
    {"atomic_fetch_add", [](Words* w) { (void)npushmem_uint64_atomic_fetch_add(&w->value, 1, waiting_pe); }},
    {"atomic_swap", [](Words* w) { (void)npushmem_uint64_atomic_swap(&w->value, 1, waiting_pe); }},
    {"atomic_compare_swap", [](Words* w) { (void)npushmem_uint64_atomic_compare_swap(&w->value, 0, 1, waiting_pe); }},
    {"atomic_fetch_inc_nbi",
     [](Words* w) {
         static std::uint64_t before;
         npushmem_uint64_atomic_fetch_inc_nbi(&before, &w->value, waiting_pe);
     }},
    {"atomic_xor", [](Words* w) { npushmem_uint64_atomic_xor(&w->value, 1, waiting_pe); }},
};

// Returns whether the store woke the PE.
bool wakes(const AwaitedBytes& awaited, Words* words, const Store& store) {
    while (awaited.sleepers.load() == 0) sched_yield();
    const std::uint32_t before = awaited.wakes.load();
    store.to(words);
    npushmem_quiet();
    return awaited.wakes.load() != before;
}

void test_store(Checker& check, const Job& job, Words* words, const Store& store, bool many) {
    static int woken;
    constexpr int tries = 200;
    int* const published = static_cast<int*>(npushmem_malloc(sizeof(int)));
    for (int i = 0; i < tries; ++i) {
        words->value = 0;
        npushmem_barrier_all();
        if (job.me == 0) {
            woken = wakes(awaited_bytes(npushmem_ptr(published, waiting_pe)), words, store) ? 1 : 0;
            for (int pe = 1; pe < job.npes; ++pe) npushmem_int_p(published, woken, pe);
        } else if (job.me != waiting_pe) {
            // PE 0 says how it ended.
        } else if (many) {
            // The object is one of several.
            (void)npushmem_uint64_wait_until_any(&words->value, 2, nullptr, NPUSHMEM_CMP_NE, 0);
        } else {
            npushmem_uint64_wait_until(&words->value, NPUSHMEM_CMP_NE, 0);
        }
        npushmem_barrier_all();
        const auto& own = awaited_bytes(npushmem_ptr(published, job.me));
        check.equal("sleepers after a wait", std::uint32_t{0}, own.sleepers.load());
        if (job.me != 0) woken = *published;
        if (woken != 0) break;
    }
    check.that(fmt::format("{} has not woken {}", store.name, many ? "wait_until_any" : "wait_until"), woken != 0);
    npushmem_free(published);
}

void test_wakes(Checker& check, const Job& job) {
    auto* const words = static_cast<Words*>(npushmem_calloc(1, sizeof(Words)));
    npushmem_team_t even = NPUSHMEM_TEAM_INVALID;
    npushmem_team_split_strided(NPUSHMEM_TEAM_WORLD, 0, 2, 2, nullptr, 0, &even);
    if (even != NPUSHMEM_TEAM_INVALID) (void)npushmem_team_create_ctx(even, 0, &of_even_pes);
    for (const Store& store : stores) {
        test_store(check, job, words, store, false);
        test_store(check, job, words, store, true);
        test_store(check, job, &variable, store, false);
    }
    check.no_error("wakes");
    if (even != NPUSHMEM_TEAM_INVALID) npushmem_ctx_destroy(of_even_pes);
    npushmem_team_destroy(even);
    npushmem_free(words);
}

}  // namespace
}  // namespace npushmem::api_test

int main() { return npushmem::api_test::run_family("wakes", npushmem::api_test::test_wakes); }
