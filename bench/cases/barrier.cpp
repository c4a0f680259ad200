// SPDX-License-Identifier: BSD-3-Clause
// Barrier and sync of all PEs. The baselines are a dissemination barrier over bare mapped words, which suits PEs with a
// core each, and a barrier at one bare counter, which suits PEs that share cores. On several hosts the baseline has the
// necessary parts of any barrier: a barrier of the hosts' first PEs over the network, and a barrier of the PEs of each
// host.
#include <algorithm>
#include <vector>

#include "bench/cases/baselines.hpp"
#include "bench/cases/case.hpp"
#include "npushmem.h"

namespace npushmem::bench {
namespace {

constexpr int max_rounds = 20;

struct RawRound {
    std::byte* there;  // the word at the PE 2^round further
    std::byte* here;
};

std::vector<RawRound> raw_rounds(const Arena& arena) {
    std::vector<RawRound> rounds;
    std::byte* line = arena.own;
    for (int distance = 1; distance < arena.pes; distance *= 2, line += raw_line_bytes) {
        auto* there = static_cast<std::byte*>(npushmem_ptr(line, (arena.pe + distance) % arena.pes));
        rounds.push_back({there, line});
    }
    return rounds;
}

Variant raw_barrier(std::vector<RawRound> rounds, int polls) {
    return {"raw words, dissemination",
            [rounds = std::move(rounds), polls, count = std::uint64_t{0}](std::uint64_t iterations) mutable {
                for (const std::uint64_t end = count + iterations; count < end;) {
                    ++count;
                    for (const RawRound& round : rounds) {
                        raw_set(round.there, count);
                        raw_wait(round.here, count, polls);
                    }
                }
            },
            true};
}

struct RawCounter {
    std::byte* counter;  // of PE 0, at its address in this process
    std::byte* release;
};

Variant raw_counter(RawCounter at, int pes, int polls) {
    return {"raw counter",
            [at, pes, polls, count = std::uint64_t{0}](std::uint64_t iterations) mutable {
                std::atomic_ref counter(*reinterpret_cast<std::uint64_t*>(at.counter));
                for (const std::uint64_t end = count + iterations; count < end;) {
                    ++count;
                    if (counter.fetch_add(1) + 1 == count * static_cast<std::uint64_t>(pes))
                        raw_set(at.release, count);
                    else
                        raw_wait(at.release, count, polls);
                }
            },
            true};
}

// The first PEs of all hosts, on every PE. Empty if there is one host only, or if a host has one PE.
std::vector<int> first_pes(const Arena& arena) {
    constexpr int max_pes = 512;  // whose numbers fit into the arena
    if (arena.all_mapped || arena.pes > max_pes) return {};
    auto* const mine = arena.own_as<int>();
    *mine = npushmem_team_translate_pe(NPUSHMEM_TEAM_SHARED, 0, NPUSHMEM_TEAM_WORLD);
    auto* const all = mine + raw_line_bytes / sizeof(int);
    npushmem_int32_fcollect(NPUSHMEM_TEAM_WORLD, all, mine, 1);
    std::vector<int> firsts(all, all + arena.pes);
    std::sort(firsts.begin(), firsts.end());
    firsts.erase(std::unique(firsts.begin(), firsts.end()), firsts.end());
    const auto hosts = static_cast<int>(firsts.size());
    return hosts > 1 && hosts < arena.pes ? firsts : std::vector<int>{};
}

// Runs both parts one after the other, so that neither overlaps with the waits of the other. `firsts`: from first_pes.
// `words`: one zero word for each of their rounds.
Variant parts_of_hierarchical(const std::vector<int>& firsts, int pe, std::uint64_t* words) {
    std::vector<int> targets;
    const auto me = std::find(firsts.begin(), firsts.end(), pe);
    if (me != firsts.end())
        for (std::size_t distance = 1; distance < firsts.size(); distance *= 2)
            targets.push_back(firsts[(static_cast<std::size_t>(me - firsts.begin()) + distance) % firsts.size()]);
    return {"network round + host's sync",
            [targets, words, count = std::uint64_t{0}](std::uint64_t iterations) mutable {
                for (const std::uint64_t end = count + iterations; count < end;) {
                    ++count;
                    for (std::size_t round = 0; round < targets.size(); ++round) {
                        npushmem_signal_set(words + round, count, targets[round]);
                        npushmem_signal_wait_until(words + round, NPUSHMEM_CMP_GE, count);
                    }
                }
                for (std::uint64_t i = 0; i < iterations; ++i) npushmem_team_sync(NPUSHMEM_TEAM_SHARED);
            },
            true};
}

std::vector<Point> points(const Arena& arena) {
    if (arena.pes < 2) return {};
    Point barrier{
        .name = "barrier_all", .shared = true, .variants = {measured([](std::uint64_t) { npushmem_barrier_all(); })}};
    Point sync{.name = "sync_all", .shared = true, .variants = {measured([](std::uint64_t) { npushmem_sync_all(); })}};
    if (arena.all_mapped) {
        auto* const lines = static_cast<std::byte*>(npushmem_ptr(arena.own + max_rounds * raw_line_bytes, 0));
        barrier.variants.push_back(raw_barrier(raw_rounds(arena), raw_polls(arena.pes)));
        barrier.variants.push_back(raw_counter({lines, lines + raw_line_bytes}, arena.pes, raw_polls(arena.pes)));
    }
    auto* const words = reinterpret_cast<std::uint64_t*>(arena.own);
    if (const std::vector<int> firsts = first_pes(arena); !firsts.empty()) {
        std::fill_n(words, raw_line_bytes / sizeof *words, 0);
        npushmem_barrier_all();
        sync.variants.push_back(parts_of_hierarchical(firsts, arena.pe, words));
    }
    return {barrier, sync};
}

}  // namespace

Case barrier_case() { return {"barrier", (max_rounds + 2) * raw_line_bytes, points}; }

}  // namespace npushmem::bench
