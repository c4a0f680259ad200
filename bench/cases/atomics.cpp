// Atomic operations on a word that no other PE uses at the time.
#include <atomic>

#include "bench/cases/case.hpp"
#include "bench/cases/variants.hpp"
#include "bench/cases/word_ring.hpp"
#include "npushmem.h"

namespace npushmem::bench {
namespace {

// The same operation done here, on the peer's memory and on memory of this process alone. Relaxed: nothing is published
// through these words, only the instruction's cost is of interest.
template <class Operation>
Variant same(const char* name, std::uint64_t* ring, Operation operation) {
    return baseline(name, [operation, ring](std::uint64_t i) { operation(ring[i % ring_words]); });
}

template <class Operation>
void add_baselines(Point& point, const Arena& arena, Operation operation) {
    if (arena.mapped != nullptr)
        point.variants.push_back(same("same, mapped", arena.mapped_as<std::uint64_t>(), operation));
    point.variants.push_back(same("same, private", private_ring(point), operation));
}

Point fetch_add_point(const Arena& arena) {
    Point point{.name = "fetch_add",
                .variants = {measured([ring = arena.own_as<std::uint64_t>(), peer = arena.peer](std::uint64_t i) {
                    do_not_optimize(npushmem_uint64_atomic_fetch_add(ring + i % ring_words, 1, peer));
                })}};
    add_baselines(point, arena, [](std::uint64_t& word) {
        do_not_optimize(std::atomic_ref(word).fetch_add(1, std::memory_order_relaxed));
    });
    return point;
}

Point add_point(const Arena& arena) {
    Point point{.name = "add",
                .variants = {measured([ring = arena.own_as<std::uint64_t>(), peer = arena.peer](std::uint64_t i) {
                    npushmem_uint64_atomic_add(ring + i % ring_words, 1, peer);
                })}};
    add_baselines(point, arena,
                  [](std::uint64_t& word) { std::atomic_ref(word).fetch_add(1, std::memory_order_relaxed); });
    return point;
}

Point fetch_point(const Arena& arena) {
    Point point{.name = "fetch",
                .variants = {measured([ring = arena.own_as<std::uint64_t>(), peer = arena.peer](std::uint64_t i) {
                    do_not_optimize(npushmem_uint64_atomic_fetch(ring + i % ring_words, peer));
                })}};
    add_baselines(point, arena,
                  [](std::uint64_t& word) { do_not_optimize(std::atomic_ref(word).load(std::memory_order_relaxed)); });
    return point;
}

Point compare_swap_point(const Arena& arena) {
    Point point{.name = "compare_swap",
                .variants = {measured([ring = arena.own_as<std::uint64_t>(), peer = arena.peer](std::uint64_t i) {
                    do_not_optimize(npushmem_uint64_atomic_compare_swap(ring + i % ring_words, i, i + 1, peer));
                })}};
    add_baselines(point, arena, [](std::uint64_t& word) {
        std::uint64_t expected = 0;
        do_not_optimize(std::atomic_ref(word).compare_exchange_strong(expected, 1, std::memory_order_relaxed));
    });
    return point;
}

std::vector<Point> points(const Arena& arena) {
    return {fetch_add_point(arena), add_point(arena), fetch_point(arena), compare_swap_point(arena)};
}

}  // namespace

Case atomics_case() { return {"atomics", ring_bytes, points}; }

}  // namespace npushmem::bench
