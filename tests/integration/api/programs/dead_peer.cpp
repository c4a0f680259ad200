// SPDX-License-Identifier: BSD-3-Clause
// A job of four PEs whose PE 2 dies: every call that needs it fails on the others with its number, all other calls go
// on, and after a shrink the living have everything that a job has. PE 0 prints a line if all have verified that.
//     dead_peer <memory: kept|lost>   whether operations on the dead PE's memory succeed
#include <fmt/format.h>
#include <npushmem.h>
#include <npushmem/moe.h>
#include <npushmem/plugin/abi.h>
#include <npushmemx.h>
#include <signal.h>

#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <string>
#include <string_view>
#include <vector>

#include "tests/integration/api/programs/team_layer.hpp"

namespace {

constexpr int victim = 2;
constexpr std::uint64_t last_words = 4242;

[[noreturn]] void complain(const std::string& what) {
    std::fputs(fmt::format("dead_peer: PE {}: {}\n", npushmem_my_pe(), what).c_str(), stderr);
    npushmem_global_exit(3);
    std::abort();
}

int verified = 0;

// Runs a call and requires that it fails because of the victim, whom the report names.
template <class Call>
void needs_the_dead(const char* name, const Call& call, std::string_view remedy = "") {
    npushmemx_clear_error();
    call();
    const char* message = nullptr;
    const int code = npushmemx_last_error(&message);
    const std::string_view text(message);
    if (code != NPUSHMEM_E_PEER_DEAD || text.find("PE 2") == text.npos || text.find(remedy) == text.npos)
        complain(fmt::format("{} gives {}: {}", name, code, text));
    ++verified;
}

template <class Call>
void goes_on(const char* name, const Call& call) {
    npushmemx_clear_error();
    call();
    const char* message = nullptr;
    if (const int code = npushmemx_last_error(&message); code != 0)
        complain(fmt::format("{} fails with {}: {}", name, code, message));
    ++verified;
}

void require(bool holds, const char* what) {
    if (!holds) complain(what);
}

struct Memory {
    std::uint64_t* word;
    std::uint64_t* signal;
    std::uint64_t* source;
    std::uint64_t* dest;
    long* lock;
};

Memory allocate() {
    const auto words = [](std::size_t count) {
        auto* made = static_cast<std::uint64_t*>(npushmem_calloc(count, sizeof(std::uint64_t)));
        require(made != nullptr, "no memory");
        return made;
    };
    return {words(1), words(1), words(8), words(32), reinterpret_cast<long*>(words(1))};
}

void check_memory_of_the_dead(const Memory& memory, bool is_kept) {
    std::uint64_t seen = 0;
    const auto get = [&] { npushmem_uint64_get(&seen, memory.word, 1, victim); };
    const auto put = [&] {
        npushmem_uint64_p(memory.word, last_words, victim);
        npushmem_quiet();
    };
    const auto add = [&] { (void)npushmem_uint64_atomic_fetch_add(memory.word, 0, victim); };
    if (npushmem_ptr(memory.word, victim) != nullptr || is_kept) {
        goes_on("get", get);
        require(seen == last_words, "the memory of the dead PE has changed");
        goes_on("put", put);
        goes_on("atomic", add);
        return;
    }
    needs_the_dead("get", get);
    needs_the_dead("atomic", add);
}

void check_waits(const Memory& memory, npushmemx_team_uniqueid_t id) {
    needs_the_dead("team_init", [&] {
        npushmemx_team_config_t config{};
        config.uniqueid = id;
        npushmem_team_t made = NPUSHMEM_TEAM_INVALID;
        (void)npushmemx_team_init(&made, &config, NPUSHMEMX_TEAM_UNIQUEID, 4, npushmem_my_pe());
    });
    needs_the_dead("signal_wait_until", [&] { npushmem_signal_wait_until(memory.signal, NPUSHMEM_CMP_EQ, 17); });
    needs_the_dead("wait_until", [&] { npushmem_uint64_wait_until(memory.signal, NPUSHMEM_CMP_EQ, 17); });
    needs_the_dead("wait_until_any",
                   [&] { (void)npushmem_uint64_wait_until_any(memory.signal, 1, nullptr, NPUSHMEM_CMP_EQ, 17); });
    needs_the_dead("a wait in a stream", [&] {
        (void)npushmemx_signal_wait_until_on_stream(memory.signal, NPUSHMEM_CMP_EQ, 17, nullptr);
        (void)npushmemx_stream_synchronize(nullptr);
    });
}

// Of the world, and of another team of all PEs.
void check_collectives(const Memory& memory, npushmem_team_t team) {
    needs_the_dead("barrier_all", [] { npushmem_barrier_all(); });
    needs_the_dead("sync_all", [] { npushmem_sync_all(); });
    for (const npushmem_team_t all : {NPUSHMEM_TEAM_WORLD, team}) {
        needs_the_dead("team_sync", [&] { (void)npushmem_team_sync(all); });
        needs_the_dead("team_barrier", [&] { (void)npushmemx_team_barrier(all); });
        const int root = npushmem_team_translate_pe(NPUSHMEM_TEAM_WORLD, victim, all);
        needs_the_dead("broadcast", [&] { (void)npushmem_uint64_broadcast(all, memory.dest, memory.source, 2, root); });
        needs_the_dead("collect", [&] { (void)npushmem_uint64_collect(all, memory.dest, memory.source, 2); });
        needs_the_dead("fcollect", [&] { (void)npushmem_uint64_fcollect(all, memory.dest, memory.source, 2); });
        needs_the_dead("alltoall", [&] { (void)npushmem_uint64_alltoall(all, memory.dest, memory.source, 2); });
        needs_the_dead("reduce", [&] { (void)npushmem_uint64_sum_reduce(all, memory.dest, memory.source, 2); });
        needs_the_dead("team_split", [&] {
            npushmem_team_t made = NPUSHMEM_TEAM_INVALID;
            (void)npushmem_team_split_strided(all, 0, 1, 2, nullptr, 0, &made);
        });
    }
}

void create_layer_of_the_world() {
    npushmemx_moe_config_t config = NPUSHMEMX_MOE_CONFIG_INITIALIZER;
    config.experts = config.top_k = 1;
    config.hidden = config.max_tokens = 4;
    npushmemx_moe_t* layer = nullptr;
    (void)npushmemx_moe_create(&config, &layer);
    require(layer == nullptr, "a failed call returned a layer");
}

void check_heap(const Memory& memory) {
    constexpr std::string_view remedy = "npushmemx_team_shrink of NPUSHMEM_TEAM_WORLD";
    const auto is_null = [](const void* made) { require(made == nullptr, "a failed call returned memory"); };
    needs_the_dead(
        "malloc", [&] { is_null(npushmem_malloc(64)); }, remedy);
    needs_the_dead(
        "calloc", [&] { is_null(npushmem_calloc(8, 8)); }, remedy);
    needs_the_dead(
        "align", [&] { is_null(npushmem_align(256, 64)); }, remedy);
    needs_the_dead(
        "realloc", [&] { is_null(npushmem_realloc(memory.dest, 4096)); }, remedy);
    needs_the_dead(
        "free", [&] { npushmem_free(memory.dest); }, remedy);
    needs_the_dead("moe_create", create_layer_of_the_world, remedy);
}

// A team without the dead PE: 0 and 1, or 3 alone.
void check_others(const Memory& memory, npushmem_team_t without) {
    const int size = npushmem_team_n_pes(without);
    goes_on("a barrier without the dead PE", [&] { (void)npushmemx_team_barrier(without); });
    memory.source[0] = 5;
    goes_on("a reduction without it",
            [&] { (void)npushmem_uint64_sum_reduce(without, memory.dest, memory.source, 1); });
    require(memory.dest[0] == 5U * static_cast<unsigned>(size), "wrong sum");
}

// Each of the living takes the dead PE's lock in turn.
void check_lock(const Memory& memory) {
    goes_on("set_lock", [&] { npushmem_set_lock(memory.lock); });
    goes_on("clear_lock", [&] { npushmem_clear_lock(memory.lock); });
}

// The word of a lock was not 0 before its first use. While all PEs live.
void check_wrong_lock(const Memory& memory) {
    for (const std::uint64_t word : {std::uint64_t{5}, std::uint64_t{0x80000000}, ~std::uint64_t{0}}) {
        memory.source[1] = word;
        npushmem_barrier_all();
        auto* const lock = reinterpret_cast<long*>(memory.source + 1);
        for (const bool waits : {true, false}) {
            npushmemx_clear_error();
            if (waits)
                npushmem_set_lock(lock);
            else
                (void)npushmem_test_lock(lock);
            const char* message = nullptr;
            require(npushmemx_last_error(&message) == NPUSHMEM_E_ARGUMENT, "a lock that was never 0 is taken");
            require(std::string_view(message).find("a lock is 0 before its first use") != std::string_view::npos,
                    "another report");
        }
        npushmemx_clear_error();
        npushmem_barrier_all();
    }
}

void check_life_after(Memory& memory, npushmem_team_t team) {
    const int size = npushmem_team_n_pes(team);
    const int me = npushmem_team_my_pe(team);
    const int next = npushmem_team_translate_pe(team, (me + 1) % size, NPUSHMEM_TEAM_WORLD);
    require(size == 3 && npushmem_team_translate_pe(NPUSHMEM_TEAM_WORLD, victim, team) < 0, "wrong members");
    int failed[4] = {};
    int count = 0;
    goes_on("get_failed", [&] { (void)npushmemx_team_get_failed(NPUSHMEM_TEAM_WORLD, 4, failed, &count); });
    require(count == 1 && failed[0] == victim, "wrong list of the dead");
    goes_on("signals and waits", [&] {
        npushmemx_signal_op(memory.signal, 17, NPUSHMEM_SIGNAL_OP_SET, next);
        npushmem_signal_wait_until(memory.signal, NPUSHMEM_CMP_EQ, 17);
    });
    needs_the_dead("barrier_all", [] { npushmem_barrier_all(); });
    goes_on("free of an object that the dead PE had", [&] { npushmem_free(memory.dest); });
    for (int i = 0; i < 3; ++i) {
        goes_on("malloc", [&] { memory.dest = static_cast<std::uint64_t*>(npushmem_malloc(256)); });
        require(memory.dest != nullptr, "no memory after the shrink");
        npushmem_uint64_p(memory.dest, static_cast<std::uint64_t>(100 * i + me), next);
        goes_on("team_barrier", [&] { (void)npushmemx_team_barrier(team); });
        require(memory.dest[0] == static_cast<std::uint64_t>(100 * i + (me + size - 1) % size), "wrong value");
        goes_on("realloc", [&] { memory.dest = static_cast<std::uint64_t*>(npushmem_realloc(memory.dest, 8192)); });
        require(memory.dest != nullptr && memory.dest[0] % 100 < 3, "realloc has lost the content");
        if (i < 2) goes_on("free", [&] { npushmem_free(memory.dest); });
    }
    needs_the_dead("moe_create on the world", create_layer_of_the_world);
    for (const int mode : {NPUSHMEMX_MOE_DIRECT, NPUSHMEMX_MOE_CHUNKED, NPUSHMEMX_MOE_STREAM}) {
        npushmem::api_test::TeamLayer of_team;
        goes_on("moe_create", [&] { (void)of_team.create(team, mode); });
        for (int call = 0; call < 3; ++call) {
            std::string wrong;
            goes_on("dispatch and combine", [&] { (void)of_team.pass(call, wrong); });
            if (!wrong.empty()) complain(wrong);
        }
        goes_on("moe_destroy", [&] { of_team.destroy(); });
    }
}

}  // namespace

int main(int argc, char** argv) {
    if (argc != 2) return 2;
    const bool is_kept = std::string_view(argv[1]) == "kept";
    npushmem_init();
    require(npushmem_n_pes() == 4, "not four PEs");
    Memory memory = allocate();
    npushmem_team_t all = NPUSHMEM_TEAM_INVALID;
    npushmem_team_t first = NPUSHMEM_TEAM_INVALID;
    npushmem_team_t last = NPUSHMEM_TEAM_INVALID;
    npushmem_team_split_strided(NPUSHMEM_TEAM_WORLD, 3, -1, 4, nullptr, 0, &all);
    npushmem_team_split_strided(NPUSHMEM_TEAM_WORLD, 0, 1, 2, nullptr, 0, &first);
    npushmem_team_split_strided(NPUSHMEM_TEAM_WORLD, 3, 1, 1, nullptr, 0, &last);
    *memory.word = last_words;
    npushmemx_team_uniqueid_t id = 0;
    if (npushmem_my_pe() == 0) require(npushmemx_team_get_uniqueid(&id) == 0, "no id");
    memory.source[0] = id;
    (void)npushmem_uint64_broadcast(NPUSHMEM_TEAM_WORLD, memory.dest, memory.source, 1, 0);
    npushmem_barrier_all();
    id = memory.dest[0];
    check_wrong_lock(memory);
    // Connections exist; the first operation after the death is none that connects.
    npushmem_uint64_p(memory.source, 1, victim);
    if (npushmem_my_pe() == victim) npushmem_set_lock(memory.lock);
    npushmem_barrier_all();
    if (npushmem_my_pe() == victim) (void)raise(SIGKILL);

    check_collectives(memory, all);
    check_waits(memory, id);
    check_memory_of_the_dead(memory, is_kept);
    check_heap(memory);
    check_others(memory, npushmem_my_pe() == 3 ? last : first);
    check_lock(memory);
    npushmem_team_t team = NPUSHMEM_TEAM_INVALID;
    npushmem_quiet();
    goes_on("team_shrink", [&] { (void)npushmemx_team_shrink(NPUSHMEM_TEAM_WORLD, &team); });
    check_life_after(memory, team);
    check_memory_of_the_dead(memory, is_kept);

    memory.source[0] = static_cast<std::uint64_t>(verified);
    goes_on("the last reduction", [&] { (void)npushmem_uint64_sum_reduce(team, memory.dest, memory.source, 1); });
    if (npushmem_team_my_pe(team) == 0) {
        std::printf("dead_peer: %d PEs have verified %d calls\n", npushmem_team_n_pes(team),
                    static_cast<int>(memory.dest[0]));
        std::fflush(stdout);
    }
    npushmem_finalize();
    return 0;
}
