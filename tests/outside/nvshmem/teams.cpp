// SPDX-License-Identifier: BSD-3-Clause
// A program of NVSHMEM: teams that exist, that are split from others, and that form by an id; collectives on each.
#include <nvshmem.h>
#include <nvshmemx.h>

#include <cstdio>
#include <vector>

namespace {

int bad = 0;

void check(bool holds, const char* what) {
    if (holds) return;
    std::printf("PE %d: %s\n", nvshmem_my_pe(), what);
    ++bad;
}

// Sums the numbers of the members in the world, and collects them.
void use(nvshmem_team_t team, int* memory, const char* name) {
    if (team == NVSHMEM_TEAM_INVALID) return;
    const int size = nvshmem_team_n_pes(team);
    const int me = nvshmem_team_my_pe(team);
    std::vector<int> members;
    int sum = 0;
    for (int i = 0; i < size; ++i) {
        members.push_back(nvshmem_team_translate_pe(team, i, NVSHMEM_TEAM_WORLD));
        sum += members.back();
    }
    check(members[static_cast<std::size_t>(me)] == nvshmem_my_pe(), name);
    memory[0] = nvshmem_my_pe();
    check(nvshmem_barrier(team) == 0, name);
    check(nvshmem_int_sum_reduce(team, memory + 1, memory, 1) == 0 && memory[1] == sum, name);
    check(nvshmem_int_fcollect(team, memory + 2, memory, 1) == 0, name);
    for (int i = 0; i < size; ++i) check(memory[2 + i] == members[static_cast<std::size_t>(i)], name);
    check(nvshmem_sync(team) == 0 && nvshmem_team_sync(team) == 0, name);
}

// The PEs of every host, and the PEs at one place of the hosts: together they are the world.
void use_hosts(int* memory) {
    const int on_host = nvshmem_team_n_pes(NVSHMEMX_TEAM_NODE);
    const int place = nvshmem_team_my_pe(NVSHMEMX_TEAM_NODE);
    const int hosts = nvshmem_team_n_pes(NVSHMEMX_TEAM_SAME_MYPE_NODE);
    check(place >= 0 && place < on_host && hosts >= 1 && on_host * hosts >= 1, "teams of hosts");
    for (int i = 0; i < nvshmem_team_n_pes(NVSHMEM_TEAM_SHARED); ++i)
        check(nvshmem_team_translate_pe(NVSHMEM_TEAM_SHARED, i, NVSHMEMX_TEAM_NODE) >= 0, "shared is part of the host");
    use(NVSHMEMX_TEAM_NODE, memory, "node");
    use(NVSHMEMX_TEAM_SAME_MYPE_NODE, memory, "same place on all hosts");
    nvshmem_barrier_all();
    int* counts = memory;
    counts[0] = place == 0 ? on_host : 0;
    check(nvshmem_int_sum_reduce(NVSHMEM_TEAM_WORLD, counts + 1, counts, 1) == 0, "sum");
    check(counts[1] == nvshmem_n_pes(), "the hosts have all PEs");
}

void use_listed(int* memory) {
    // In the opposite order; PE 0 makes the id.
    nvshmem_barrier_all();
    auto* id = reinterpret_cast<uint64_t*>(memory);
    nvshmem_team_config_t config = NVSHMEM_TEAM_CONFIG_INITIALIZER;
    if (nvshmem_my_pe() == 0) check(nvshmemx_team_get_uniqueid(&config.uniqueid) == 0, "id of a team");
    id[0] = config.uniqueid;
    check(nvshmem_uint64_broadcast(NVSHMEM_TEAM_WORLD, id + 1, id, 1, 0) == 0, "broadcast");
    config.uniqueid = id[1];
    const int n = nvshmem_n_pes();
    nvshmem_team_t team = NVSHMEM_TEAM_INVALID;
    check(nvshmemx_team_init(&team, &config, NVSHMEM_TEAM_CONFIG_MASK_UNIQUEID, n, n - 1 - nvshmem_my_pe()) == 0,
          "team_init");
    check(nvshmem_team_translate_pe(team, 0, NVSHMEM_TEAM_WORLD) == n - 1, "order of a listed team");
    use(team, memory, "listed");
    nvshmem_team_destroy(team);
}

void use_splits(int* memory) {
    const int n = nvshmem_n_pes();
    nvshmem_team_t odd = NVSHMEM_TEAM_INVALID;
    nvshmem_team_t row = NVSHMEM_TEAM_INVALID;
    nvshmem_team_t column = NVSHMEM_TEAM_INVALID;
    nvshmem_team_config_t config = NVSHMEM_TEAM_CONFIG_INITIALIZER;
    config.num_contexts = 3;
    check(nvshmem_team_split_2d(NVSHMEM_TEAM_WORLD, 2, &config, NVSHMEM_TEAM_NUM_CONTEXTS, &row, nullptr, 0, &column) ==
              0,
          "split_2d");
    use(row, memory, "row");
    use(column, memory, "column");
    config.num_contexts = 0;
    check(nvshmem_team_get_config(row, &config) == 0 && config.num_contexts == 3, "configuration");
    if (n >= 2) {
        check(nvshmem_team_split_strided(NVSHMEM_TEAM_WORLD, 1, 2, n / 2, nullptr, 0, &odd) == 0, "split_strided");
        check((odd != NVSHMEM_TEAM_INVALID) == (nvshmem_my_pe() % 2 == 1), "members of a split");
        use(odd, memory, "odd");
        if (odd != NVSHMEM_TEAM_INVALID) nvshmem_team_destroy(odd);
    }
    nvshmem_team_destroy(column);
    nvshmem_team_destroy(row);
}

}  // namespace

int main() {
    nvshmem_init();
    auto* memory = static_cast<int*>(nvshmem_calloc(static_cast<std::size_t>(nvshmem_n_pes()) + 8, sizeof(int)));
    use(NVSHMEM_TEAM_WORLD, memory, "world");
    use_hosts(memory);
    use_splits(memory);
    use_listed(memory);
    std::printf("NVSHMEM teams: PE %d of %d %s\n", nvshmem_my_pe(), nvshmem_n_pes(), bad == 0 ? "good" : "BAD");
    nvshmem_free(memory);
    nvshmem_finalize();
    return bad != 0 ? 1 : 0;
}
