// All PEs meet. The baselines meet by the rounds of dissemination over bare mapped words, which suits PEs with a core
// each, and at one bare counter, which suits PEs that share cores.
#include "bench/cases/case.hpp"
#include "bench/cases/raw_line.hpp"
#include "bench/cases/variants.hpp"
#include "npushmem.h"

namespace npushmem::bench {
namespace {

constexpr int most_rounds = 20;

struct RawRound {
    std::byte* there;  // where to tell the PE 2^round further
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
    std::byte* counter;  // of PE 0, as this one sees it
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

std::vector<Point> points(const Arena& arena) {
    if (arena.pes < 2) return {};
    Point barrier{
        .name = "barrier_all", .shared = true, .variants = {measured([](std::uint64_t) { npushmem_barrier_all(); })}};
    Point sync{.name = "sync_all", .shared = true, .variants = {measured([](std::uint64_t) { npushmem_sync_all(); })}};
    if (arena.all_mapped) {
        auto* const lines = static_cast<std::byte*>(npushmem_ptr(arena.own + most_rounds * raw_line_bytes, 0));
        barrier.variants.push_back(raw_barrier(raw_rounds(arena), raw_polls(arena.pes)));
        barrier.variants.push_back(raw_counter({lines, lines + raw_line_bytes}, arena.pes, raw_polls(arena.pes)));
    }
    return {barrier, sync};
}

}  // namespace

Case barrier_case() { return {"barrier", (most_rounds + 2) * raw_line_bytes, points}; }

}  // namespace npushmem::bench
