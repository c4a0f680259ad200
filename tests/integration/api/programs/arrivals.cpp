// SPDX-License-Identifier: BSD-3-Clause
// An arrival over a network wakes the PE that sleeps until then. Four PEs on two hosts.
//
// PE 2 waits. PE 3, on its host, sees in its slice that it sleeps, and lets PE 0 send. PE 2 counts the wake-ups of its
// slice during the wait. It may check by itself just before; then the PEs repeat, with a longer wait, in which it
// checks more rarely.
#include <sched.h>

#include <chrono>
#include <cstdint>

#include "npushmem.h"
#include "npushmemx.h"
#include "tests/integration/api/programs/checker.hpp"
#include "tests/integration/api/programs/sleepers.hpp"

namespace npushmem::api_test {
namespace {

constexpr int sending_pe = 0;
constexpr int waiting_pe = 2;
constexpr int watching_pe = 3;
constexpr std::size_t long_words = 10'000;

struct Words {
    std::uint64_t value;
    std::uint64_t go;
    std::uint64_t woken;
    std::uint64_t sum[2];
    std::uint64_t data[long_words];
};

npushmem_team_t of_both = NPUSHMEM_TEAM_INVALID;  // PEs 0 and 2
std::uint64_t source[long_words] = {1};

struct Arrival {
    const char* name;
    void (*send)(Words* words);
    void (*wait)(Words* words);
};

void wait_for_value(Words* w) { npushmem_uint64_wait_until(&w->value, NPUSHMEM_CMP_NE, 0); }
void wait_for_signal(Words* w) { (void)npushmem_signal_wait_until(&w->value, NPUSHMEM_CMP_EQ, 1); }

const Arrival arrivals[] = {
    {"p", [](Words* w) { npushmem_uint64_p(&w->value, 1, waiting_pe); }, wait_for_value},
    {"p, wait_until_any", [](Words* w) { npushmem_uint64_p(&w->value, 1, waiting_pe); },
     [](Words* w) { (void)npushmem_uint64_wait_until_any(&w->value, 1, nullptr, NPUSHMEM_CMP_NE, 0); }},
    {"put_signal",
     [](Words* w) { npushmem_uint64_put_signal(w->data, source, 1, &w->value, 1, NPUSHMEM_SIGNAL_OP_SET, waiting_pe); },
     wait_for_signal},
    {"long put_signal",
     [](Words* w) {
         npushmem_uint64_put_signal(w->data, source, long_words, &w->value, 1, NPUSHMEM_SIGNAL_OP_ADD, waiting_pe);
     },
     wait_for_signal},
    {"atomic_add", [](Words* w) { npushmem_uint64_atomic_add(&w->value, 1, waiting_pe); }, wait_for_value},
    {"team_sync", [](Words*) { npushmem_team_sync(of_both); }, [](Words*) { npushmem_team_sync(of_both); }},
    {"sum_reduce", [](Words* w) { npushmem_uint64_sum_reduce(of_both, &w->sum[0], &w->sum[1], 1); },
     [](Words* w) { npushmem_uint64_sum_reduce(of_both, &w->sum[0], &w->sum[1], 1); }},
};

void test_arrival(Checker& check, const Job& job, Words* words, const Arrival& arrival) {
    static std::uint64_t round;
    constexpr int tries = 100;
    bool woken = false;
    for (int i = 0; i < tries && !woken; ++i) {
        ++round;
        words->value = 0;
        words->woken = 0;
        npushmem_barrier_all();
        if (job.me == waiting_pe) {
            const AwaitedBytes& own = awaited_bytes(words);
            const std::uint32_t before = own.wakes.load();
            arrival.wait(words);
            const std::uint64_t counted = own.wakes.load() != before ? 1 : 0;
            check.equal("sleepers after a wait", std::uint32_t{0}, own.sleepers.load());
            for (int pe = 0; pe < job.npes; ++pe) npushmem_uint64_p(&words->woken, counted, pe);
        } else if (job.me == watching_pe) {
            const AwaitedBytes& watched = awaited_bytes(npushmem_ptr(words, waiting_pe));
            while (watched.sleepers.load() == 0) sched_yield();
            const auto begin = std::chrono::steady_clock::now();
            while (std::chrono::steady_clock::now() - begin < std::chrono::milliseconds(i)) sched_yield();
            npushmem_uint64_p(&words->go, round, sending_pe);
            npushmem_quiet();
        } else if (job.me == sending_pe) {
            npushmem_uint64_wait_until(&words->go, NPUSHMEM_CMP_EQ, round);
            arrival.send(words);
            npushmem_quiet();
        }
        npushmem_barrier_all();
        woken = words->woken != 0;
    }
    check.that(fmt::format("{} has not woken the PE", arrival.name), woken);
}

void test_arrivals(Checker& check, const Job& job) {
    auto* const words = static_cast<Words*>(npushmem_calloc(1, sizeof(Words)));
    npushmem_team_split_strided(NPUSHMEM_TEAM_WORLD, 0, 2, 2, nullptr, 0, &of_both);
    for (const Arrival& arrival : arrivals) test_arrival(check, job, words, arrival);
    check.no_error("arrivals");
    npushmem_team_destroy(of_both);
    npushmem_free(words);
}

}  // namespace
}  // namespace npushmem::api_test

int main() { return npushmem::api_test::run_family("arrivals", npushmem::api_test::test_arrivals); }
