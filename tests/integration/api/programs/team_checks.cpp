// SPDX-License-Identifier: BSD-3-Clause
#include "tests/integration/api/programs/team_checks.hpp"

#include <fmt/format.h>

#include <algorithm>

#include "npushmem/plugin/abi.h"

namespace npushmem::api_test {

void check_team(Checker& check, const Job& job, const std::string& name, npushmem_team_t team, const Members& members) {
    const auto mine = std::find(members.begin(), members.end(), job.me);
    if (mine == members.end()) {
        check.that(name + ": not a member", team == NPUSHMEM_TEAM_INVALID);
        check.equal(name + ": my_pe of no team", -1, npushmem_team_my_pe(team));
        check.equal(name + ": n_pes of no team", -1, npushmem_team_n_pes(team));
        return;
    }
    const int index = static_cast<int>(mine - members.begin());
    check.equal(name + ": my_pe", index, npushmem_team_my_pe(team));
    check.equal(name + ": n_pes", static_cast<int>(members.size()), npushmem_team_n_pes(team));
    for (int i = 0; i < static_cast<int>(members.size()); ++i)
        check.equal(name + ": translate to the world", members[static_cast<std::size_t>(i)],
                    npushmem_team_translate_pe(team, i, NPUSHMEM_TEAM_WORLD));
    for (int pe = 0; pe < job.npes; ++pe) {
        const auto at = std::find(members.begin(), members.end(), pe);
        check.equal(name + ": translate from the world",
                    at == members.end() ? -1 : static_cast<int>(at - members.begin()),
                    npushmem_team_translate_pe(NPUSHMEM_TEAM_WORLD, pe, team));
    }
    check.equal(name + ": translate nobody", -1,
                npushmem_team_translate_pe(team, static_cast<int>(members.size()), NPUSHMEM_TEAM_WORLD));
}

void use_team(Checker& check, const std::string& name, npushmem_team_t team, long* word) {
    if (team == NPUSHMEM_TEAM_INVALID) return;
    const int size = npushmem_team_n_pes(team);
    const int index = npushmem_team_my_pe(team);
    npushmem_ctx_t ctx = NPUSHMEM_CTX_INVALID;
    check.equal(name + ": team_create_ctx", 0, npushmem_team_create_ctx(team, NPUSHMEM_CTX_SERIALIZED, &ctx));
    npushmem_team_t of_ctx = NPUSHMEM_TEAM_INVALID;
    check.equal(name + ": ctx_get_team", 0, npushmem_ctx_get_team(ctx, &of_ctx));
    check.that(name + ": the context's team", of_ctx == team);
    const int next = (index + 1) % size;
    check.equal(name + ": sync", 0, npushmem_team_sync(team));
    npushmem_ctx_long_p(ctx, word, 1000 + index, next);
    npushmem_ctx_quiet(ctx);
    check.equal(name + ": sync", 0, npushmem_team_sync(team));
    check.equal(name + ": received value", 1000L + (index + size - 1) % size, *word);
    check.equal(name + ": atomic in the team", 1000L + index, npushmem_ctx_long_atomic_fetch(ctx, word, next));
    const int beyond = size;
    npushmem_ctx_long_p(ctx, word, 0, beyond);
    check.failed_with(name + ": a PE beyond the team", NPUSHMEM_E_RANGE, {"does not exist in the context's team"});
    if (void* there = npushmem_team_ptr(team, word, next))
        check.that(name + ": team_ptr",
                   there == npushmem_ptr(word, npushmem_team_translate_pe(team, next, NPUSHMEM_TEAM_WORLD)));
    check.equal(name + ": sync", 0, npushmem_team_sync(team));
    npushmem_ctx_destroy(ctx);
}

Members strided(const Members& parent, int start, int stride, int size) {
    Members members;
    for (int i = 0; i < size; ++i) members.push_back(parent[static_cast<std::size_t>(start + i * stride)]);
    return members;
}

void test_strided(Checker& check, const Job& job, npushmem_team_t parent, const Members& all, int depth, long* word) {
    const int n = static_cast<int>(all.size());
    for (int start = 0; start < n; ++start)
        for (int stride = -n; stride <= n; ++stride)
            for (int size = 1; size <= n; ++size) {
                const int last = start + stride * (size - 1);
                if (last < 0 || last >= n || (stride == 0 && size > 1)) continue;
                if (n > 4 && (start + size + stride) % 3 != 0) continue;  // enough of them
                const std::string name = fmt::format("{}:{}:{} of {}", start, stride, size, n);
                npushmem_team_t team = NPUSHMEM_TEAM_INVALID;
                check.equal(name, 0, npushmem_team_split_strided(parent, start, stride, size, nullptr, 0, &team));
                const Members members = strided(all, start, stride, size);
                check_team(check, job, name, team, members);
                use_team(check, name, team, word);
                if (depth > 0 && team != NPUSHMEM_TEAM_INVALID && size == n - 1)
                    test_strided(check, job, team, members, depth - 1, word);
                npushmem_team_destroy(team);
            }
}

}  // namespace npushmem::api_test
