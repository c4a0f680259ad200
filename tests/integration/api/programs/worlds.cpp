// SPDX-License-Identifier: BSD-3-Clause
// Each process is a PE of the default world, which restarts with other numbers of PEs, and of another world, which
// lives as long as the process and is used by a thread of its own.
#include <cstring>
#include <thread>
#include <vector>

#include "npushmem.h"
#include "npushmemx.h"
#include "tests/integration/api/programs/checker.hpp"

namespace npushmem::api_test {
namespace {

// Transfers, atomics and collectives on the current world of the thread.
void use_world(Checker& check, const char* what, const Job& expected) {
    check.equal(fmt::format("{}: my_pe", what), expected.me, npushmem_my_pe());
    check.equal(fmt::format("{}: n_pes", what), expected.npes, npushmem_n_pes());
    auto* const words = static_cast<long*>(npushmem_calloc(2048, sizeof(long)));
    const std::vector<long> block(1024, pattern(expected.me, 1, 0));
    for (int round = 1; round <= 3; ++round) {
        npushmem_long_p(words, pattern(expected.me, round, 0), expected.right());
        npushmem_putmem(words + 1024, block.data(), block.size() * sizeof(long), expected.right());
        npushmem_long_atomic_inc(words + 1, 0);
        npushmem_barrier_all();
        check.equal(fmt::format("{}: p", what), static_cast<long>(pattern(expected.left(), round, 0)), words[0]);
        check.equal(fmt::format("{}: putmem", what), static_cast<long>(pattern(expected.left(), 1, 0)),
                    words[1024 + 1023]);
        check.equal(fmt::format("{}: atomics", what), static_cast<long>(round * expected.npes),
                    npushmem_long_g(words + 1, 0));
        words[2] = expected.me;
        npushmem_long_sum_reduce(NPUSHMEM_TEAM_WORLD, words + 3, words + 2, 1);
        check.equal(fmt::format("{}: reduce", what), expected.npes * (expected.npes - 1L) / 2, words[3]);
        npushmem_barrier_all();
    }
    npushmem_free(words);
    check.no_error(what);
}

bool start_default(Checker& check, const npushmemx_uniqueid_t& id, const Job& job) {
    npushmemx_init_attr_t attr = NPUSHMEMX_INIT_ATTR_INITIALIZER;
    (void)npushmemx_set_attr_uniqueid_args(job.me, job.npes, &id, &attr);
    return check.equal("restart", 0, npushmemx_init_attr(NPUSHMEMX_INIT_WITH_UNIQUEID, &attr));
}

// The first PE makes the ids and gives them to the others.
constexpr std::size_t id_count = 3;
std::vector<npushmemx_uniqueid_t> share_ids(Checker& check, const Job& job) {
    std::vector<npushmemx_uniqueid_t> ids(id_count);
    for (auto& id : ids)
        if (job.me == 0) check.equal("get_uniqueid", 0, npushmemx_get_uniqueid(&id));
    const std::size_t bytes = sizeof ids[0] * ids.size();
    void* const source = npushmem_malloc(bytes);
    void* const dest = npushmem_malloc(bytes);
    std::memcpy(source, ids.data(), bytes);
    check.equal("broadcast", 0, npushmem_broadcastmem(NPUSHMEM_TEAM_WORLD, dest, source, bytes, 0));
    if (job.me != 0) std::memcpy(ids.data(), dest, bytes);
    npushmem_free(dest);
    npushmem_free(source);
    return ids;
}

int run() {
    Checker check("worlds");
    npushmem_init();
    const Job job{npushmem_my_pe(), npushmem_n_pes()};
    check.set_pe(job.me);
    const auto ids = share_ids(check, job);

    const Job mirrored{job.npes - 1 - job.me, job.npes};
    npushmemx_world_attr_t attr = NPUSHMEMX_WORLD_ATTR_INITIALIZER;
    (void)npushmemx_set_attr_uniqueid_args(mirrored.me, mirrored.npes, &ids[0], &attr.init);
    npushmemx_world_t mirror = nullptr;
    if (!check.equal("world_create", 0, npushmemx_world_create(&attr, &mirror))) return check.exit_status();
    Checker check_mirror("worlds, mirrored");
    std::thread in_mirror([&] {
        check.equal("make_current", 0, npushmemx_world_make_current(mirror, nullptr));
        for (int i = 0; i < 5; ++i) use_world(check_mirror, "mirror", mirrored);
    });

    use_world(check, "default", job);
    npushmem_finalize();
    const Job half{job.me, (job.npes + 1) / 2};
    if (half.me < half.npes && start_default(check, ids[1], half)) {
        use_world(check, "half", half);
        npushmem_finalize();
    }
    if (start_default(check, ids[2], mirrored)) use_world(check, "default again", mirrored);
    in_mirror.join();
    check.equal("world_destroy", 0, npushmemx_world_destroy(mirror));
    use_world(check, "default at the end", mirrored);
    npushmem_finalize();
    check.no_error("at the end");
    return check.exit_status() | check_mirror.exit_status();
}

}  // namespace
}  // namespace npushmem::api_test

int main() { return npushmem::api_test::run(); }
