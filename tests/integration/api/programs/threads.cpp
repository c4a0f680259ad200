// SPDX-License-Identifier: BSD-3-Clause
// Several threads of each PE in the library at the same time: on contexts of their own, of a team, shared ones and the
// default one; with the levels of thread support that a program may ask for. What one thread of a PE does, the thread
// of the same number does at all others.
#include <algorithm>
#include <array>
#include <functional>
#include <mutex>
#include <thread>
#include <vector>

#include "npushmem.h"
#include "npushmemx.h"
#include "tests/integration/api/programs/checker.hpp"

namespace npushmem::api_test {
namespace {

constexpr int threads_per_pe = 3;  // threads of a PE
constexpr int rounds = 24;
constexpr std::size_t block = 33;  // words; not a size that a transport optimises

// One PE's symmetric memory, a part of its own for each thread.
struct PeMemory {
    struct ThreadMemory {
        std::uint64_t blocks[rounds][block];
        std::uint64_t signal;
        std::uint64_t sum;
        std::uint64_t word;
    };
    ThreadMemory parts[threads_per_pe];
    std::uint64_t tickets;  // all PEs use PE 0's
};

struct Member {
    Checker& check;
    const Job& job;
    PeMemory& pe_memory;
    int thread;

    [[nodiscard]] PeMemory::ThreadMemory& part() const { return pe_memory.parts[thread]; }
    [[nodiscard]] std::uint64_t value(int pe, int round, std::size_t i) const {
        return static_cast<std::uint64_t>(pe) * 1'000'000 + static_cast<std::uint64_t>(thread) * 100'000 +
               static_cast<std::uint64_t>(round) * 1'000 + i;
    }
    [[nodiscard]] std::array<std::uint64_t, block> values(int pe, int round) const {
        std::array<std::uint64_t, block> out{};
        for (std::size_t i = 0; i < block; ++i) out[i] = value(pe, round, i);
        return out;
    }
};

using Body = std::function<void(const Member&)>;

// Runs the body in all threads of the PE, on memory that is zero at all PEs before; `after` looks at it when all
// threads of all PEs are through.
void with_threads(
    Checker& check, const Job& job, const Body& body,
    const std::function<void(const PeMemory&)>& after = [](auto&) {}) {
    auto* pe_memory = static_cast<PeMemory*>(npushmem_calloc(1, sizeof(PeMemory)));
    if (!check.that("symmetric memory", pe_memory != nullptr)) return;
    std::vector<Checker> reports(threads_per_pe, Checker("threads"));
    std::vector<std::thread> threads;
    for (int i = 0; i < threads_per_pe; ++i)
        threads.emplace_back([&, i, &report = reports[static_cast<std::size_t>(i)]] {
            report.set_pe(job.me);
            body({report, job, *pe_memory, i});
            report.no_error("at the thread's end");
        });
    for (std::thread& thread : threads) thread.join();
    for (const Checker& report : reports) check.that("what a thread has reported", report.exit_status() == 0);
    npushmem_barrier_all();
    after(*pe_memory);
    npushmem_free(pe_memory);
}

// Puts to the right neighbour, reads it back after quiet, and takes a ticket from PE 0: those of one thread rise.
void use(const Member& m, npushmem_ctx_t ctx) {
    const int to = m.job.right();
    std::uint64_t last = 0;
    for (int round = 0; round < rounds; ++round) {
        const auto sent = m.values(m.job.me, round);
        std::array<std::uint64_t, block> seen{};
        npushmem_ctx_uint64_put_nbi(ctx, m.part().blocks[round], sent.data(), block, to);
        npushmem_ctx_uint64_atomic_add(ctx, &m.part().sum, 1, to);
        if (round % 3 == 0) npushmem_ctx_fence(ctx);
        if (round % 3 == 1) npushmem_ctx_pe_quiet(ctx, &to, 1);
        npushmem_ctx_quiet(ctx);
        npushmem_ctx_uint64_get_nbi(ctx, seen.data(), m.part().blocks[round], block, to);
        npushmem_ctx_quiet(ctx);
        m.check.that("a block read back", seen == sent);
        const std::uint64_t ticket = npushmem_ctx_uint64_atomic_fetch_inc(ctx, &m.pe_memory.tickets, 0);
        m.check.that("tickets rise", round == 0 || ticket > last);
        last = ticket;
    }
}

void check_after_use(Checker& check, const Job& job, const PeMemory& pe_memory) {
    const auto total = static_cast<std::uint64_t>(threads_per_pe) * rounds * static_cast<std::uint64_t>(job.npes);
    check.equal("tickets of all", total, npushmem_uint64_atomic_fetch(&pe_memory.tickets, 0));
    for (const PeMemory::ThreadMemory& part : pe_memory.parts)
        check.equal("updates of the left neighbour", std::uint64_t{rounds},
                    npushmem_uint64_atomic_fetch(&part.sum, job.me));
}

// Every thread uses the context that `give` returns.
void test_use(Checker& check, const Job& job, const std::function<npushmem_ctx_t(int thread)>& give,
              const std::function<void(npushmem_ctx_t)>& take_back) {
    const auto body = [&](const Member& m) {
        const npushmem_ctx_t ctx = give(m.thread);
        use(m, ctx);
        take_back(ctx);
    };
    with_threads(check, job, body, [&](const PeMemory& pe_memory) { check_after_use(check, job, pe_memory); });
}

npushmem_ctx_t created(long options) {
    npushmem_ctx_t ctx = NPUSHMEM_CTX_INVALID;
    npushmem_ctx_create(options, &ctx);
    return ctx;
}

void test_contexts(Checker& check, const Job& job) {
    const auto nothing = [](npushmem_ctx_t) {};
    test_use(
        check, job, [](int) { return NPUSHMEM_CTX_DEFAULT; }, nothing);
    test_use(
        check, job, [](int) { return created(NPUSHMEM_CTX_PRIVATE); }, npushmem_ctx_destroy);
    test_use(
        check, job, [](int) { return created(NPUSHMEM_CTX_NOSTORE); }, npushmem_ctx_destroy);
    // The first two threads share one; the last one has the default.
    const npushmem_ctx_t shared = created(0);
    test_use(
        check, job, [&](int thread) { return thread < 2 ? shared : NPUSHMEM_CTX_DEFAULT; }, nothing);
    npushmem_ctx_destroy(shared);
}

// Creates and destroys contexts while other threads use theirs: destroying a context completes its puts.
void test_short_lives(Checker& check, const Job& job) {
    with_threads(check, job, [](const Member& m) {
        const int to = m.job.right();
        for (std::uint64_t round = 1; round <= rounds; ++round) {
            const npushmem_ctx_t ctx = created(round % 2 == 0 ? NPUSHMEM_CTX_SERIALIZED : 0);
            npushmem_ctx_uint64_put_nbi(ctx, &m.part().word, &round, 1, to);
            npushmem_ctx_destroy(ctx);
            m.check.equal("after the context", round, npushmem_uint64_g(&m.part().word, to));
        }
    });
}

// From thread to thread of the same number, around all PEs; each waits for its own signal.
void test_signals(Checker& check, const Job& job) {
    with_threads(check, job, [](const Member& m) {
        const npushmem_ctx_t ctx = m.thread == 0 ? NPUSHMEM_CTX_DEFAULT : created(0);
        std::vector<std::array<std::uint64_t, block>> sent;
        for (int round = 0; round < rounds; ++round) sent.push_back(m.values(m.job.me, round));
        for (int round = 0; round < rounds; ++round) {
            const auto* const data = sent[static_cast<std::size_t>(round)].data();
            npushmem_ctx_fence(ctx);
            npushmem_ctx_uint64_put_signal_nbi(ctx, m.part().blocks[round], data, block, &m.part().signal, 1,
                                               NPUSHMEM_SIGNAL_OP_ADD, m.job.right());
            npushmem_signal_wait_until(&m.part().signal, NPUSHMEM_CMP_GE, static_cast<std::uint64_t>(round + 1));
            const auto expected = m.values(m.job.left(), round);
            m.check.that("the data of a signal", std::equal(expected.begin(), expected.end(), m.part().blocks[round]));
        }
        npushmem_ctx_quiet(ctx);
        if (ctx != NPUSHMEM_CTX_DEFAULT) npushmem_ctx_destroy(ctx);
    });
}

// Contexts of a team, whose numbers run the other way; those that are left end with the team.
void test_teams(Checker& check, const Job& job) {
    npushmem_team_t team = NPUSHMEM_TEAM_INVALID;
    check.equal("split", 0,
                npushmem_team_split_strided(NPUSHMEM_TEAM_WORLD, job.npes - 1, -1, job.npes, nullptr, 0, &team));
    const int index = npushmem_team_my_pe(team);
    const int to = (index + 1) % job.npes;
    with_threads(check, job, [&](const Member& m) {
        npushmem_ctx_t ctx = NPUSHMEM_CTX_INVALID;
        m.check.equal("team_create_ctx", 0, npushmem_team_create_ctx(team, 0, &ctx));
        for (std::uint64_t round = 1; round <= rounds; ++round) npushmem_ctx_uint64_p(ctx, &m.part().word, round, to);
        npushmem_ctx_quiet(ctx);
        m.check.equal("through the team", std::uint64_t{rounds},
                      npushmem_uint64_g(&m.part().word, npushmem_team_translate_pe(team, to, NPUSHMEM_TEAM_WORLD)));
        if (m.thread == 0) npushmem_ctx_destroy(ctx);
    });
    npushmem_team_destroy(team);
    check.no_error("teams");
}

// FUNNELED: the thread of init alone; SERIALIZED: all, one at a time.
void test_turns(Checker& check, const Job& job, bool all) {
    std::mutex turn;
    const std::thread::id first = std::this_thread::get_id();
    auto* word = static_cast<std::uint64_t*>(npushmem_calloc(1, sizeof(std::uint64_t)));
    const auto count = [&] {
        const std::lock_guard guard(turn);
        if (all || std::this_thread::get_id() == first) npushmem_uint64_atomic_inc(word, job.right());
    };
    std::vector<std::thread> threads;
    for (int i = 0; i < threads_per_pe; ++i) threads.emplace_back(count);
    count();
    for (std::thread& thread : threads) thread.join();
    npushmem_barrier_all();
    check.equal("counted in turns", std::uint64_t{1} + (all ? threads_per_pe : 0),
                npushmem_uint64_atomic_fetch(word, job.me));
    npushmem_barrier_all();
    npushmem_free(word);
}

// One init and finalize with this thread level.
void with_level(Checker& check, int level, const std::function<void(const Job&)>& tests) {
    int provided = -1;
    if (!check.equal("npushmem_init_thread", 0, npushmem_init_thread(level, &provided))) return;
    const Job job{npushmem_my_pe(), npushmem_n_pes()};
    check.set_pe(job.me);
    check.that("a level as high as was asked for", provided >= level);
    tests(job);
    npushmem_finalize();
    check.no_error("a level of thread support");
}

int run() {
    Checker check("threads");
    with_level(check, NPUSHMEM_THREAD_SINGLE, [&](const Job& job) { test_turns(check, job, false); });
    with_level(check, NPUSHMEM_THREAD_FUNNELED, [&](const Job& job) { test_turns(check, job, false); });
    with_level(check, NPUSHMEM_THREAD_SERIALIZED, [&](const Job& job) { test_turns(check, job, true); });
    with_level(check, NPUSHMEM_THREAD_MULTIPLE, [&](const Job& job) {
        test_contexts(check, job);
        test_short_lives(check, job);
        test_signals(check, job);
        test_teams(check, job);
    });
    return check.exit_status();
}

}  // namespace
}  // namespace npushmem::api_test

int main() { return npushmem::api_test::run(); }
