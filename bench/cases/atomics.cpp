// SPDX-License-Identifier: BSD-3-Clause
// Atomic operations on a word that no other PE uses at the time.
#include <atomic>

#include "bench/cases/baselines.hpp"
#include "bench/cases/case.hpp"
#include "npushmem.h"

namespace npushmem::bench {

namespace {

// The same operation by this process, on the peer's mapped memory and on private memory. Relaxed: these words publish
// nothing; only the instruction's cost matters.
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

// All PEs add to one word of PE 0 at the same time.

namespace {

std::vector<Point> contended_points(const Arena& arena) {
    auto* const word = arena.own_as<std::uint64_t>();
    Point point{.name = "fetch_add, all to one", .shared = true, .variants = {measured([word](std::uint64_t) {
                                                                     do_not_optimize(
                                                                         npushmem_uint64_atomic_fetch_add(word, 1, 0));
                                                                 })}};
    auto* const target = static_cast<std::uint64_t*>(npushmem_ptr(word, 0));
    if (arena.all_mapped)
        point.variants.push_back(baseline("same, mapped", [target](std::uint64_t) {
            // Relaxed: only the cost is of interest.
            do_not_optimize(std::atomic_ref(*target).fetch_add(1, std::memory_order_relaxed));
        }));
    return {point};
}

}  // namespace

Case contended_atomics_case() { return {"atomics", sizeof(std::uint64_t), contended_points}; }

}  // namespace npushmem::bench
