// SPDX-License-Identifier: BSD-3-Clause
// Teams: all splits, nested, overlapping and in reverse; translation, synchronisation and contexts; creation and
// destruction hundreds of times.
#include <fmt/format.h>

#include <algorithm>
#include <cstdlib>
#include <string>
#include <vector>

#include "npushmem.h"
#include "npushmem/plugin/abi.h"
#include "npushmemx.h"
#include "tests/integration/api/programs/team_checks.hpp"

namespace npushmem::api_test {
namespace {

void test_2d(Checker& check, const Job& job, long* word) {
    for (int xrange = 1; xrange <= job.npes + 1; ++xrange) {
        const std::string name = fmt::format("2d, xrange {}", xrange);
        npushmem_team_t x = NPUSHMEM_TEAM_INVALID, y = NPUSHMEM_TEAM_INVALID;
        const npushmem_team_config_t config = {7};
        check.equal(name, 0,
                    npushmem_team_split_2d(NPUSHMEM_TEAM_WORLD, xrange, &config, NPUSHMEM_TEAM_NUM_CONTEXTS, &x,
                                           nullptr, 0, &y));
        Members row, column;
        for (int pe = 0; pe < job.npes; ++pe) {
            if (pe / xrange == job.me / xrange) row.push_back(pe);
            if (pe % xrange == job.me % xrange) column.push_back(pe);
        }
        check_team(check, job, name + ", row", x, row);
        check_team(check, job, name + ", column", y, column);
        // Both exist at the same time and overlap.
        use_team(check, name + ", row", x, word);
        npushmem_barrier_all();
        use_team(check, name + ", column", y, word);
        npushmem_team_config_t seen = {-1};
        check.equal(name + ": get_config", 0, npushmem_team_get_config(x, NPUSHMEM_TEAM_NUM_CONTEXTS, &seen));
        check.equal(name + ": the configuration", 7, seen.num_contexts);
        npushmem_team_destroy(x);
        npushmem_team_destroy(y);
    }
}

// Selects each algorithm for one call, and the last one for the team. A value put before the sync must arrive with it.
void test_algorithms_in(Checker& check, const Job& job, npushmem_team_t team, const std::vector<std::string>& names,
                        long* word) {
    const int size = npushmem_team_n_pes(team);
    const int next = npushmem_team_translate_pe(team, (npushmem_team_my_pe(team) + 1) % size, NPUSHMEM_TEAM_WORLD);
    const int before = (npushmem_team_my_pe(team) + size - 1) % size;
    const int whose = npushmem_team_translate_pe(team, before, NPUSHMEM_TEAM_WORLD);
    long round = 0;
    const auto meet = [&](const std::string& name, auto&& sync) {
        ++round;
        npushmem_long_p(word, 100 * round + job.me, next);
        npushmem_quiet();
        check.equal(name + ": sync", 0, sync());
        check.equal(name + ": received value", 100 * round + whose, npushmem_long_atomic_fetch(word, job.me));
        check.equal("sync", 0, npushmem_team_sync(team));
    };
    for (const std::string& name : names) meet(name, [&] { return npushmemx_team_sync_by(team, name.c_str()); });
    check.equal("set", 0, npushmemx_team_set_barrier(team, names.back().c_str()));
    meet(names.back() + " of the team", [&] { return npushmem_team_sync(team); });
    check.that("no such algorithm", npushmemx_team_sync_by(team, "dissemniation") != 0);
    check.failed_with("no such algorithm", NPUSHMEM_E_CONFIG, {"did you mean"});
    check.that("no algorithm", npushmemx_team_set_barrier(team, nullptr) != 0);
    check.failed_with("no algorithm", NPUSHMEM_E_ARGUMENT, {"NULL"});
    if (size > 2) {
        check.that("two of more", npushmemx_team_set_barrier(team, "two_proc") != 0);
        check.failed_with("two of more", NPUSHMEM_E_RANGE, {"at most 2"});
    }
    check.equal("back to auto", 0, npushmemx_team_set_barrier(team, "auto"));
    check.that("no such method", npushmemx_team_set_collectives(team, "npushmem:pulll") != 0);
    check.failed_with("no such method", NPUSHMEM_E_ARGUMENT, {"no method \"pulll\"", "push, pull, scatter"});
    npushmemx_statistics_t counted{};
    check.equal("statistics", 0, npushmemx_team_get_statistics(team, &counted));
    if (std::getenv("NPUSHMEM_STATS") == nullptr)
        check.equal("nothing is counted unasked", std::uint64_t{0}, counted.barriers);
    check.that("statistics nowhere", npushmemx_team_get_statistics(team, nullptr) != 0);
    check.failed_with("statistics nowhere", NPUSHMEM_E_ARGUMENT, {"NULL"});
}

void test_algorithms(Checker& check, const Job& job, long* word) {
    test_algorithms_in(check, job, NPUSHMEM_TEAM_WORLD, {"auto", "dissemination_k:3"}, word);
    npushmem_team_t team = NPUSHMEM_TEAM_INVALID;
    const int size = (job.npes + 1) / 2;
    check.equal("every other", 0, npushmem_team_split_strided(NPUSHMEM_TEAM_WORLD, 0, 2, size, nullptr, 0, &team));
    if (team != NPUSHMEM_TEAM_INVALID)
        test_algorithms_in(check, job, team, {"hierarchical", "linear", "tournament", "knomial_tree:3"}, word);
    check.equal("all are there", 0, npushmem_team_sync(NPUSHMEM_TEAM_WORLD));
    npushmem_team_destroy(team);
    check.that("no team", npushmemx_team_sync_by(NPUSHMEM_TEAM_INVALID, "tree") != 0);
    check.failed_with("no team", NPUSHMEM_E_ARGUMENT, {"NPUSHMEM_TEAM_INVALID"});
}

// The library reuses team slots but not handles. PEs destroy the teams at different times.
void test_reuse(Checker& check, const Job& job) {
    npushmem_team_t old = NPUSHMEM_TEAM_INVALID;
    constexpr int rounds = 300;  // more than teams can exist
    for (int round = 0; round < rounds; ++round) {
        const int size = 1 + round % job.npes;
        npushmem_team_t team = NPUSHMEM_TEAM_INVALID;
        check.equal("split", 0, npushmem_team_split_strided(NPUSHMEM_TEAM_WORLD, 0, 1, size, nullptr, 0, &team));
        check.that("a name of its own", team == NPUSHMEM_TEAM_INVALID || team != old);
        if (team == NPUSHMEM_TEAM_INVALID) continue;
        check.equal("sync", 0, npushmem_team_sync(team));
        npushmem_team_destroy(team);
        old = team;
    }
    check.no_error("making and destroying");
    if (old != NPUSHMEM_TEAM_INVALID) {
        check.equal("my_pe of a destroyed team", -1, npushmem_team_my_pe(old));
        check.failed_with("my_pe of a destroyed team", NPUSHMEM_E_ARGUMENT, {"npushmem_team_my_pe", "destroyed"});
        check.that("sync of a destroyed team", npushmem_team_sync(old) != 0);
        check.failed_with("sync of a destroyed team", NPUSHMEM_E_ARGUMENT, {"has been destroyed"});
    }
    // The maximum number of teams, and one more.
    std::vector<npushmem_team_t> teams;
    npushmem_team_t team = NPUSHMEM_TEAM_INVALID;
    while (npushmem_team_split_strided(NPUSHMEM_TEAM_WORLD, 0, 1, job.npes, nullptr, 0, &team) == 0)
        teams.push_back(team);
    check.that("a failed split gives no team", team == NPUSHMEM_TEAM_INVALID);
    check.failed_with("one team too many", NPUSHMEM_E_MEMORY, {"teams already"});
    check.that("there can be many teams", teams.size() >= 200);
    for (const npushmem_team_t one : teams) check.equal("sync of many", 0, npushmem_team_sync(one));
    for (const npushmem_team_t one : teams) npushmem_team_destroy(one);
}

void test_contexts(Checker& check, const Job& job, long* word) {
    npushmem_ctx_t ctx = NPUSHMEM_CTX_INVALID;
    const long options[] = {0, NPUSHMEM_CTX_SERIALIZED, NPUSHMEM_CTX_PRIVATE, NPUSHMEM_CTX_NOSTORE,
                            NPUSHMEM_CTX_PRIVATE | NPUSHMEM_CTX_NOSTORE};
    for (const long option : options) {
        check.equal("ctx_create", 0, npushmem_ctx_create(option, &ctx));
        const npushmem_ctx_session_config_t config = {100};
        npushmem_ctx_session_start(ctx, NPUSHMEM_CTX_SESSION_BATCH, &config, NPUSHMEM_CTX_SESSION_TOTAL_OPS);
        npushmem_ctx_long_p(ctx, word, 500 + option, job.right());
        npushmem_ctx_session_stop(ctx);
        npushmem_ctx_quiet(ctx);
        npushmem_barrier_all();
        check.equal("through a context", 500 + option, *word);
        npushmem_barrier_all();
        npushmem_ctx_destroy(ctx);
    }
    npushmem_team_t team = NPUSHMEM_TEAM_WORLD;
    check.that("team of no context", npushmem_ctx_get_team(NPUSHMEM_CTX_INVALID, &team) != 0);
    check.that("no team", team == NPUSHMEM_TEAM_INVALID);
    check.equal("team of the default context", 0, npushmem_ctx_get_team(NPUSHMEM_CTX_DEFAULT, &team));
    check.that("the world", team == NPUSHMEM_TEAM_WORLD);
    check.that("no context of no team", npushmem_team_create_ctx(NPUSHMEM_TEAM_INVALID, 0, &ctx) != 0);
    npushmem_ctx_destroy(NPUSHMEM_CTX_INVALID);
    check.no_error("contexts");
    check.that("unknown options", npushmem_ctx_create(64, &ctx) != 0);
    check.failed_with("unknown options", NPUSHMEM_E_ARGUMENT, {"options 0x40"});
    npushmem_ctx_long_p(NPUSHMEM_CTX_INVALID, word, 1, 0);
    check.failed_with("no context", NPUSHMEM_E_ARGUMENT, {"NPUSHMEM_CTX_INVALID"});
    npushmem_ctx_destroy(NPUSHMEM_CTX_DEFAULT);
    check.failed_with("the default context", NPUSHMEM_E_ARGUMENT, {"cannot be destroyed"});
}

bool calls_are_checked() { return std::getenv("NPUSHMEM_CHECK") != nullptr; }

// One call creates different teams: one of each PE, or pairs.
void test_apart(Checker& check, const Job& job, long* word) {
    if (calls_are_checked()) return;
    for (const int size : {1, 2}) {
        const int first = job.me / size * size;
        if (job.npes % size != 0) continue;
        const std::string name = fmt::format("teams of {} in one call", size);
        npushmem_team_t team = NPUSHMEM_TEAM_INVALID;
        check.equal(name, 0, npushmem_team_split_strided(NPUSHMEM_TEAM_WORLD, first, 1, size, nullptr, 0, &team));
        Members members;
        for (int i = 0; i < size; ++i) members.push_back(first + i);
        check_team(check, job, name, team, members);
        use_team(check, name, team, word);
        npushmem_barrier_all();
        npushmem_team_destroy(team);
    }
}

// A split fails on all PEs when their arguments differ or name PEs that give other arguments.
void test_disagreement(Checker& check, const Job& job) {
    if (job.npes < 2) return;
    npushmem_team_t team = NPUSHMEM_TEAM_WORLD;
    const int last = job.npes - 1;
    const int size = job.me == last ? job.npes : last;
    check.that("different sizes", npushmem_team_split_strided(NPUSHMEM_TEAM_WORLD, 0, 1, size, nullptr, 0, &team) != 0);
    check.failed_with("different sizes", NPUSHMEM_E_MISMATCH, {"gave 0, 1, "});
    check.that("no team of different sizes", team == NPUSHMEM_TEAM_INVALID);
    check.that("each names its neighbour",
               npushmem_team_split_strided(NPUSHMEM_TEAM_WORLD, job.right(), 1, 1, nullptr, 0, &team) != 0);
    check.failed_with("each names its neighbour", NPUSHMEM_E_MISMATCH, {"gave"});
    check.that("different widths",
               npushmem_team_split_2d(NPUSHMEM_TEAM_WORLD, job.me + 1, nullptr, 0, &team, nullptr, 0, &team) != 0);
    check.failed_with("different widths", NPUSHMEM_E_MISMATCH, {"gave 2, "});
}

// One PE gives invalid arguments: the split fails on all PEs, names that PE, and no PE waits.
void test_refusal_of_one(Checker& check, const Job& job) {
    struct Wrong {
        int start, stride, size;
        const char* words;
    };
    const Wrong wrongs[] = {{-1, 1, 1, "start -1,"},   {job.npes, 1, 1, "start"},    {0, 1, job.npes + 1, "size"},
                            {0, 1, 0, "size 0"},       {0, 0, 2, "stride 0"},        {0, 1, -3, "size -3"},
                            {0, -1, 2, "stride -1, "}, {0, 1 << 30, 3, "1073741824"}};
    for (int who = 0; who < job.npes; who += 1 + job.npes / 3)
        for (const Wrong& wrong : wrongs) {
            const std::string name = fmt::format("PE {} refused {}", who, wrong.words);
            const std::string named = fmt::format("PE {} of the team world", who);
            const Wrong mine = job.me == who ? wrong : Wrong{0, 1, job.npes, ""};
            npushmem_team_t team = NPUSHMEM_TEAM_WORLD;
            check.that(name, npushmem_team_split_strided(NPUSHMEM_TEAM_WORLD, mine.start, mine.stride, mine.size,
                                                         nullptr, 0, &team) != 0);
            check.failed_with(name, NPUSHMEM_E_RANGE, {named, wrong.words});
            check.that(name, team == NPUSHMEM_TEAM_INVALID);
        }
    for (const int wrong : {0, -7}) {
        const int who = job.npes / 2;
        const std::string name = fmt::format("PE {} refused xrange {}", who, wrong);
        npushmem_team_t x = NPUSHMEM_TEAM_WORLD, y = NPUSHMEM_TEAM_WORLD;
        check.that(name, npushmem_team_split_2d(NPUSHMEM_TEAM_WORLD, job.me == who ? wrong : 2, nullptr, 0, &x, nullptr,
                                                0, &y) != 0);
        check.failed_with(name, NPUSHMEM_E_RANGE,
                          {fmt::format("PE {} of the team world", who), fmt::format("xrange is {}", wrong)});
        check.that(name, x == NPUSHMEM_TEAM_INVALID && y == NPUSHMEM_TEAM_INVALID);
        check.that("y nowhere", npushmem_team_split_2d(NPUSHMEM_TEAM_WORLD, 2, nullptr, 0, &x, nullptr, 0,
                                                       job.me == who ? nullptr : &y) != 0);
        check.failed_with("y nowhere", NPUSHMEM_E_ARGUMENT, {fmt::format("PE {} of the team world gave NULL", who)});
        check.that("nowhere", npushmem_team_split_strided(NPUSHMEM_TEAM_WORLD, 0, 1, 1, nullptr, 0,
                                                          job.me == who ? nullptr : &x) != 0);
        check.failed_with("nowhere", NPUSHMEM_E_ARGUMENT, {fmt::format("PE {} of the team world gave NULL", who)});
    }
}

void test_mistakes(Checker& check, const Job& job) {
    npushmem_team_t team = NPUSHMEM_TEAM_WORLD;
    check.that("wrap-around",
               npushmem_team_split_strided(NPUSHMEM_TEAM_WORLD, job.npes - 1, 1, 2, nullptr, 0, &team) != 0);
    check.failed_with("wrap-around", NPUSHMEM_E_RANGE, {"are not PEs of the team world"});
    check.that("no team", team == NPUSHMEM_TEAM_INVALID);
    check.that("of no team", npushmem_team_split_strided(NPUSHMEM_TEAM_INVALID, 0, 1, 1, nullptr, 0, &team) != 0);
    check.failed_with("of no team", NPUSHMEM_E_ARGUMENT, {"NPUSHMEM_TEAM_INVALID"});
    check.that("ptr in no team", npushmem_team_ptr(NPUSHMEM_TEAM_INVALID, &team, 0) == nullptr);
    npushmem_team_destroy(NPUSHMEM_TEAM_INVALID);
    check.no_error("destroying no team");
    npushmem_team_destroy(NPUSHMEM_TEAM_WORLD);
    check.failed_with("destroying the world", NPUSHMEM_E_ARGUMENT, {"predefined"});
}

// PEs increment a counter under one lock, with set_lock and test_lock.
void test_locks(Checker& check, const Job& job) {
    auto* lock = static_cast<long*>(npushmem_calloc(2, sizeof(long)));
    auto* count = static_cast<long*>(npushmem_calloc(1, sizeof(long)));
    constexpr int rounds = 20;
    for (int i = 0; i < rounds; ++i) {
        long* const one = lock + i % 2;
        if (i % 4 == 3) {
            while (npushmem_test_lock(lock) != 0) {
            }
            npushmem_long_p(count, npushmem_long_g(count, 0) + 1, 0);
            npushmem_clear_lock(lock);
            continue;
        }
        npushmem_set_lock(one);
        if (one == lock) npushmem_long_p(count, npushmem_long_g(count, 0) + 1, 0);
        npushmem_clear_lock(one);
    }
    npushmem_barrier_all();
    check.equal("counted under the lock", 15L * job.npes, npushmem_long_g(count, 0));
    npushmem_barrier_all();
    npushmem_free(count);
    npushmem_free(lock);
    check.no_error("locks");
}

// NPUSHMEM_TEAM_SHARED has exactly the PEs whose memory this PE maps, for any distribution of PEs to hosts.
void test_shared(Checker& check, const Job& job, long* word) {
    Members shared;
    for (int pe = 0; pe < job.npes; ++pe)
        if (pe == job.me || npushmem_ptr(word, pe) != nullptr) shared.push_back(pe);
    check_team(check, job, "shared", NPUSHMEM_TEAM_SHARED, shared);
    for (std::size_t i = 0; i < shared.size(); ++i)
        check.that("shared: team_ptr",
                   npushmem_team_ptr(NPUSHMEM_TEAM_SHARED, word, static_cast<int>(i)) == npushmem_ptr(word, shared[i]));
    use_team(check, "shared", NPUSHMEM_TEAM_SHARED, word);
    const std::string name = "all but the first of the shared";
    const int size = static_cast<int>(shared.size()) - 1;
    npushmem_team_t team = NPUSHMEM_TEAM_INVALID;
    if (size == 0) return;
    check.equal(name, 0, npushmem_team_split_strided(NPUSHMEM_TEAM_SHARED, 1, 1, size, nullptr, 0, &team));
    check_team(check, job, name, team, strided(shared, 1, 1, size));
    use_team(check, name, team, word);
    npushmem_team_destroy(team);
}

// The teams of hosts, in jobs of one host and of several: each PE is at one place of one host.
void test_host_teams(Checker& check, const Job& job, long* word) {
    Members node;
    Members same_place;
    npushmemx_route_t route = {};
    for (int pe = 0; pe < job.npes; ++pe) {
        route.struct_size = sizeof route;
        check.equal("route", 0, npushmemx_get_route(pe, &route));
        if (route.same_host != 0) node.push_back(pe);
    }
    check_team(check, job, "node", NPUSHMEMX_TEAM_NODE, node);
    auto* places = static_cast<long*>(npushmem_malloc(static_cast<std::size_t>(job.npes) * sizeof(long)));
    *word = npushmem_team_my_pe(NPUSHMEMX_TEAM_NODE);
    check.equal("places", 0, npushmem_long_fcollect(NPUSHMEM_TEAM_WORLD, places, word, 1));
    for (int pe = 0; pe < job.npes; ++pe)
        if (places[pe] == *word) same_place.push_back(pe);
    check_team(check, job, "same place", NPUSHMEMX_TEAM_SAME_MYPE_NODE, same_place);
    npushmem_barrier_all();
    npushmem_free(places);
    use_team(check, "node", NPUSHMEMX_TEAM_NODE, word);
    use_team(check, "same place", NPUSHMEMX_TEAM_SAME_MYPE_NODE, word);
    for (npushmem_team_t team : {NPUSHMEMX_TEAM_NODE, NPUSHMEMX_TEAM_SAME_MYPE_NODE}) {
        check.equal("team_barrier", 0, npushmemx_team_barrier(team));
        npushmem_team_destroy(team);
        check.failed_with("destroying a team of hosts", NPUSHMEM_E_ARGUMENT, {"predefined"});
    }
    check.that("team_barrier of no team", npushmemx_team_barrier(NPUSHMEM_TEAM_INVALID) != 0);
    check.failed_with("team_barrier of no team", NPUSHMEM_E_ARGUMENT, {"npushmemx_team_barrier"});
}

// Puts are complete at their targets after a barrier of the team.
void test_team_barrier(Checker& check, const Job& job, long* word) {
    for (long round = 1; round <= 20; ++round) {
        npushmem_long_p(word, round * 100 + job.me, job.right());
        check.equal("team_barrier", 0, npushmemx_team_barrier(NPUSHMEM_TEAM_WORLD));
        check.equal("after team_barrier", round * 100 + job.left(), *word);
        check.equal("team_barrier", 0, npushmemx_team_barrier(NPUSHMEM_TEAM_WORLD));
    }
}

void test_teams(Checker& check, const Job& job) {
    Members world;
    for (int pe = 0; pe < job.npes; ++pe) world.push_back(pe);
    auto* word = static_cast<long*>(npushmem_calloc(1, sizeof(long)));
    check_team(check, job, "world", NPUSHMEM_TEAM_WORLD, world);
    test_shared(check, job, word);
    test_host_teams(check, job, word);
    test_team_barrier(check, job, word);
    npushmem_barrier_all();
    test_strided(check, job, NPUSHMEM_TEAM_WORLD, world, 1, word);
    test_2d(check, job, word);
    npushmem_barrier_all();
    test_listed(check, job, world, word);
    test_algorithms(check, job, word);
    npushmem_barrier_all();
    test_reuse(check, job);
    npushmem_barrier_all();
    test_contexts(check, job, word);
    test_apart(check, job, word);
    test_disagreement(check, job);
    test_refusal_of_one(check, job);
    test_mistakes(check, job);
    test_locks(check, job);
    npushmem_free(word);
}

}  // namespace
}  // namespace npushmem::api_test

int main() { return npushmem::api_test::run_family("teams", npushmem::api_test::test_teams); }
