// SPDX-License-Identifier: BSD-3-Clause
// Teams from lists of members in any order, and their error cases.
#include <fmt/format.h>

#include <algorithm>
#include <string>
#include <utility>

#include "npushmem.h"
#include "npushmem/plugin/abi.h"
#include "npushmemx.h"
#include "tests/integration/api/programs/team_checks.hpp"

namespace npushmem::api_test {
namespace {

// One member creates the id and puts it to all PEs; then the members form the team.
int init_listed(const Job& job, const Members& members, npushmem_team_t& team, npushmemx_team_uniqueid_t* id) {
    npushmemx_team_config_t config = {3, 0};
    const auto mine = std::find(members.begin(), members.end(), job.me);
    if (job.me == members.back()) {
        if (const int failed = npushmemx_team_get_uniqueid(&config.uniqueid)) return failed;
        for (int pe = 0; pe < job.npes; ++pe) npushmem_uint64_p(id, config.uniqueid, pe);
    }
    npushmem_barrier_all();
    config.uniqueid = *id;
    npushmem_barrier_all();
    team = NPUSHMEM_TEAM_INVALID;
    if (mine == members.end()) return 0;
    return npushmemx_team_init(&team, &config, NPUSHMEMX_TEAM_UNIQUEID | NPUSHMEM_TEAM_NUM_CONTEXTS,
                               static_cast<int>(members.size()), static_cast<int>(mine - members.begin()));
}

// Collective operations number members by their index in the team.
void collect_in(Checker& check, const std::string& name, npushmem_team_t team, long* arrays) {
    if (team == NPUSHMEM_TEAM_INVALID) return;
    const int size = npushmem_team_n_pes(team);
    const int index = npushmem_team_my_pe(team);
    const auto n = static_cast<std::size_t>(size);
    long* const source = arrays;
    long* const dest = arrays + 64;
    for (std::size_t i = 0; i < n; ++i) source[i] = 100 * index + static_cast<long>(i);
    check.equal(name + ": sync", 0, npushmem_team_sync(team));
    check.equal(name + ": fcollect", 0, npushmem_long_fcollect(team, dest, source, 1));
    for (int i = 0; i < size; ++i) check.equal(name + ": fcollected", 100L * i, dest[i]);
    check.equal(name + ": sync", 0, npushmem_team_sync(team));
    check.equal(name + ": alltoall", 0, npushmem_long_alltoall(team, dest, source, 1));
    for (int i = 0; i < size; ++i) check.equal(name + ": from all", 100L * i + index, dest[i]);
    check.equal(name + ": sync", 0, npushmem_team_sync(team));
    check.equal(name + ": collect", 0, npushmem_long_collect(team, dest, source, index == 0 ? 2 : 1));
    for (int i = 1; i < size; ++i) check.equal(name + ": collected", 100L * i, dest[i + 1]);
    check.equal(name + ": sync", 0, npushmem_team_sync(team));
    check.equal(name + ": sum", 0, npushmem_long_sum_reduce(team, dest, source, n));
    for (int i = 0; i < size; ++i) check.equal(name + ": summed", 50L * size * (size - 1) + size * i, dest[i]);
    check.equal(name + ": sync", 0, npushmem_team_sync(team));
    check.equal(name + ": scan", 0, npushmem_long_sum_inscan(team, dest, source, 1));
    check.equal(name + ": scanned", 50L * index * (index + 1), dest[0]);
    check.equal(name + ": sync", 0, npushmem_team_sync(team));
    check.equal(name + ": broadcast", 0, npushmem_long_broadcast(team, dest, source, n, size - 1));
    for (int i = 0; i < size; ++i) check.equal(name + ": broadcast", 100L * (size - 1) + i, dest[i]);
    check.equal(name + ": sync", 0, npushmem_team_sync(team));
}

// The first `count` PEs in a random order that depends on the seed.
Members shuffled(const Members& world, unsigned seed, std::size_t count) {
    Members members = world;
    for (std::size_t i = members.size() - 1; i > 0; --i) {
        seed = seed * 1103515245U + 12345U;
        std::swap(members[i], members[(seed >> 16) % (i + 1)]);
    }
    members.resize(count);
    return members;
}

// The creator of the id rejects its own call and passes a barrier before the others call.
void test_refused_before(Checker& check, const Job& job, npushmemx_team_uniqueid_t* id) {
    npushmemx_team_config_t config = {0, 0};
    npushmem_team_t team = NPUSHMEM_TEAM_WORLD;
    const int maker = job.npes - 1;
    if (job.me == maker) {
        check.equal("an id", 0, npushmemx_team_get_uniqueid(&config.uniqueid));
        for (int pe = 0; pe < job.npes; ++pe) npushmem_uint64_p(id, config.uniqueid, pe);
        check.that("npes", npushmemx_team_init(&team, &config, NPUSHMEMX_TEAM_UNIQUEID, job.npes + 1, 0) != 0);
        check.failed_with("npes", NPUSHMEM_E_RANGE, {fmt::format("npes is {} on PE {}", job.npes + 1, maker)});
    }
    npushmem_barrier_all();
    config.uniqueid = *id;
    if (job.me != maker) {
        check.that("late", npushmemx_team_init(&team, &config, NPUSHMEMX_TEAM_UNIQUEID, job.npes, job.me) != 0);
        check.failed_with("late", NPUSHMEM_E_RANGE, {fmt::format("npes is {} on PE {}", job.npes + 1, maker)});
        check.that("late", team == NPUSHMEM_TEAM_INVALID);
    }
    config.uniqueid += 1U << 20;
    check.that("not made", npushmemx_team_init(&team, &config, NPUSHMEMX_TEAM_UNIQUEID, job.npes, job.me) != 0);
    check.failed_with("not made", NPUSHMEM_E_ARGUMENT, {"no PE of this job has made the id"});
    npushmem_barrier_all();
}

void test_listed_mistakes(Checker& check, const Job& job, npushmemx_team_uniqueid_t* id) {
    npushmem_team_t team = NPUSHMEM_TEAM_WORLD;
    npushmemx_team_config_t config = {0, 0};
    check.that("no mask", npushmemx_team_init(&team, &config, 0, 1, 0) != 0);
    check.failed_with("no mask", NPUSHMEM_E_ARGUMENT, {"NPUSHMEMX_TEAM_UNIQUEID"});
    check.that("no team", team == NPUSHMEM_TEAM_INVALID);
    check.that("no id", npushmemx_team_init(&team, &config, NPUSHMEMX_TEAM_UNIQUEID, 1, 0) != 0);
    check.failed_with("no id", NPUSHMEM_E_ARGUMENT, {"no PE of this job has made the id"});
    check.that("nowhere", npushmemx_team_get_uniqueid(nullptr) != 0);
    check.failed_with("nowhere", NPUSHMEM_E_ARGUMENT, {"NULL"});
    check.that("nowhere", npushmemx_team_init(nullptr, &config, NPUSHMEMX_TEAM_UNIQUEID, 1, 0) != 0);
    check.failed_with("nowhere", NPUSHMEM_E_ARGUMENT, {"NULL"});
    check.that("no configuration", npushmemx_team_init(&team, nullptr, NPUSHMEMX_TEAM_UNIQUEID, 1, 0) != 0);
    check.failed_with("no configuration", NPUSHMEM_E_ARGUMENT, {"NULL"});
    if (job.npes < 2) return;
    // Every PE gives index 0.
    if (job.me == 0) {
        check.equal("an id", 0, npushmemx_team_get_uniqueid(&config.uniqueid));
        for (int pe = 0; pe < job.npes; ++pe) npushmem_uint64_p(id, config.uniqueid, pe);
    }
    npushmem_barrier_all();
    config.uniqueid = *id;
    check.that("one index", npushmemx_team_init(&team, &config, NPUSHMEMX_TEAM_UNIQUEID, job.npes, 0) != 0);
    check.failed_with("one index", NPUSHMEM_E_MISMATCH, {"both gave pe_idx_in_team 0"});
    check.that("no team", team == NPUSHMEM_TEAM_INVALID);
    npushmem_barrier_all();
    test_refused_before(check, job, id);
}

}  // namespace

void test_listed(Checker& check, const Job& job, const Members& world, long* word) {
    auto* arrays = static_cast<long*>(npushmem_calloc(128, sizeof(long)));
    auto* id = static_cast<npushmemx_team_uniqueid_t*>(npushmem_calloc(1, sizeof(npushmemx_team_uniqueid_t)));
    npushmem_team_t former = NPUSHMEM_TEAM_INVALID;
    for (unsigned seed = 0; seed < 12; ++seed) {
        const Members members = shuffled(world, seed, 1 + (seed + 2) % world.size());
        const std::string name = fmt::format("listed {}", seed);
        npushmem_team_t team = NPUSHMEM_TEAM_INVALID;
        check.equal(name, 0, init_listed(job, members, team, id));
        check_team(check, job, name, team, members);
        check.that(name + ": a name of its own", team == NPUSHMEM_TEAM_INVALID || team != former);
        use_team(check, name, team, word);
        collect_in(check, name, team, arrays);
        npushmem_team_config_t seen = {-1};
        if (team != NPUSHMEM_TEAM_INVALID) {
            check.equal(name + ": get_config", 0, npushmem_team_get_config(team, NPUSHMEM_TEAM_NUM_CONTEXTS, &seen));
            check.equal(name + ": the configuration", 3, seen.num_contexts);
            test_strided(check, job, team, members, 0, word);
            npushmem_team_t x = NPUSHMEM_TEAM_INVALID, y = NPUSHMEM_TEAM_INVALID;
            check.equal(name + ": 2d", 0, npushmem_team_split_2d(team, 2, nullptr, 0, &x, nullptr, 0, &y));
            const int mine = npushmem_team_my_pe(team);
            Members row, column;
            for (int i = 0; i < static_cast<int>(members.size()); ++i) {
                if (i / 2 == mine / 2) row.push_back(members[static_cast<std::size_t>(i)]);
                if (i % 2 == mine % 2) column.push_back(members[static_cast<std::size_t>(i)]);
            }
            check_team(check, job, name + ", row", x, row);
            check_team(check, job, name + ", column", y, column);
            collect_in(check, name + ", row", x, arrays);
            check.equal(name + ": sync", 0, npushmem_team_sync(team));
            collect_in(check, name + ", column", y, arrays);
            npushmem_team_destroy(x);
            npushmem_team_destroy(y);
        }
        npushmem_team_destroy(team);
        check.equal(name + ": my_pe of it", -1, npushmem_team_my_pe(team));
        if (team != NPUSHMEM_TEAM_INVALID) {
            check.failed_with(name + ": my_pe of it", NPUSHMEM_E_ARGUMENT, {"npushmem_team_my_pe", "destroyed"});
            former = team;
        }
    }
    check.no_error("listed teams");
    npushmem_barrier_all();
    test_listed_mistakes(check, job, id);
    npushmem_free(id);
    npushmem_free(arrays);
}

}  // namespace npushmem::api_test
