// All PEs meet. The baseline meets by the same rounds over bare mapped words.
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

std::vector<Point> points(const Arena& arena) {
    if (arena.pes < 2) return {};
    Point barrier{
        .name = "barrier_all", .shared = true, .variants = {measured([](std::uint64_t) { npushmem_barrier_all(); })}};
    Point sync{.name = "sync_all", .shared = true, .variants = {measured([](std::uint64_t) { npushmem_sync_all(); })}};
    if (arena.all_mapped) barrier.variants.push_back(raw_barrier(raw_rounds(arena), raw_polls(arena.pes)));
    return {barrier, sync};
}

}  // namespace

Case barrier_case() { return {"barrier", most_rounds * raw_line_bytes, points}; }

}  // namespace npushmem::bench
