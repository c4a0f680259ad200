// SPDX-License-Identifier: BSD-3-Clause
// Eight bytes to another PE with npushmem/inline.h, beside the library's functions and the bare instructions.
#include <atomic>

#include "bench/cases/baselines.hpp"
#include "bench/cases/case.hpp"
#include "npushmem/inline.h"

namespace npushmem::bench {

namespace {

// <name>_call is the library's function: see npushmem/inline/functions.h.
Point p_point(const Arena& arena) {
    auto* const ring = arena.own_as<std::uint64_t>();
    const int peer = arena.peer;
    Point point{
        .name = "p, 8 B, inlined",
        .variants = {measured([ring, peer](std::uint64_t i) { npushmem_uint64_p(ring + i % ring_words, i, peer); })}};
    if (arena.mapped != nullptr)
        point.variants.push_back(baseline(
            "store, mapped", [to = arena.mapped_as<std::uint64_t>()](std::uint64_t i) { to[i % ring_words] = i; }));
    point.variants.push_back(baseline(
        "p, called", [ring, peer](std::uint64_t i) { npushmem_uint64_p_call(ring + i % ring_words, i, peer); }));
    point.variants.push_back(baseline("library call, no work", [](std::uint64_t) { npushmem_query_thread(nullptr); }));
    return point;
}

Point g_point(const Arena& arena) {
    auto* const ring = arena.own_as<std::uint64_t>();
    const int peer = arena.peer;
    Point point{.name = "g, 8 B, inlined", .variants = {measured([ring, peer](std::uint64_t i) {
                                               do_not_optimize(npushmem_uint64_g(ring + i % ring_words, peer));
                                           })}};
    if (arena.mapped != nullptr)
        point.variants.push_back(baseline("load, mapped", [from = arena.mapped_as<std::uint64_t>()](std::uint64_t i) {
            do_not_optimize(from[i % ring_words]);
        }));
    point.variants.push_back(baseline("g, called", [ring, peer](std::uint64_t i) {
        do_not_optimize(npushmem_uint64_g_call(ring + i % ring_words, peer));
    }));
    return point;
}

Point put_quiet_point(const Arena& arena) {
    auto* const ring = arena.own_as<std::uint64_t>();
    const int peer = arena.peer;
    Point point{.name = "put and quiet, 8 B, inlined", .variants = {measured([ring, peer](std::uint64_t i) {
                                                           npushmem_putmem(ring + i % ring_words, &i, sizeof i, peer);
                                                           npushmem_quiet();
                                                       })}};
    if (arena.mapped != nullptr)
        point.variants.push_back(
            baseline("store and fence, mapped", [to = arena.mapped_as<std::uint64_t>()](std::uint64_t i) {
                to[i % ring_words] = i;
                std::atomic_thread_fence(std::memory_order_seq_cst);  // partner: none, only its cost is of interest
            }));
    point.variants.push_back(baseline("put and quiet, called", [ring, peer](std::uint64_t i) {
        npushmem_putmem_call(ring + i % ring_words, &i, sizeof i, peer);
        npushmem_quiet_call();
    }));
    return point;
}

Point fetch_add_point(const Arena& arena) {
    auto* const ring = arena.own_as<std::uint64_t>();
    const int peer = arena.peer;
    Point point{.name = "fetch_add, inlined",
                .variants = {measured([ring, peer](std::uint64_t i) {
                    do_not_optimize(npushmem_uint64_atomic_fetch_add(ring + i % ring_words, 1, peer));
                })}};
    if (arena.mapped != nullptr)
        point.variants.push_back(baseline("same, mapped", [to = arena.mapped_as<std::uint64_t>()](std::uint64_t i) {
            // Relaxed: only the instruction's cost matters.
            do_not_optimize(std::atomic_ref(to[i % ring_words]).fetch_add(1, std::memory_order_relaxed));
        }));
    point.variants.push_back(baseline("fetch_add, called", [ring, peer](std::uint64_t i) {
        do_not_optimize(npushmem_uint64_atomic_fetch_add_call(ring + i % ring_words, 1, peer));
    }));
    return point;
}

std::vector<Point> points(const Arena& arena) {
    return {p_point(arena), g_point(arena), put_quiet_point(arena), fetch_add_point(arena)};
}

}  // namespace

Case inlined_case() { return {"inlined", ring_bytes, points}; }

}  // namespace npushmem::bench
