// Eight bytes to another PE, with and without completion.
#include <atomic>

#include "bench/cases/case.hpp"
#include "bench/cases/variants.hpp"
#include "bench/cases/word_ring.hpp"
#include "npushmem.h"

namespace npushmem::bench {
namespace {

// What no call into the library can be faster than.
Variant empty_call() {
    return baseline("library call, no work", [](std::uint64_t) { npushmem_query_thread(nullptr); });
}

Variant plain_store(std::uint64_t* to, const char* name) {
    return baseline(name, [to](std::uint64_t i) { to[i % ring_words] = i; });
}

Variant fenced_store(std::uint64_t* to) {
    return baseline("store and fence, mapped", [to](std::uint64_t i) {
        to[i % ring_words] = i;
        std::atomic_thread_fence(std::memory_order_seq_cst);  // partner: none, only its cost is of interest
    });
}

Point p_point(const Arena& arena) {
    auto* const ring = arena.own_as<std::uint64_t>();
    const int peer = arena.peer;
    Point point{
        .name = "p, 8 B",
        .variants = {measured([ring, peer](std::uint64_t i) { npushmem_uint64_p(ring + i % ring_words, i, peer); })}};
    if (arena.mapped != nullptr)
        point.variants.push_back(plain_store(arena.mapped_as<std::uint64_t>(), "store, mapped"));
    point.variants.push_back(plain_store(private_ring(point), "store, private"));
    point.variants.push_back(empty_call());
    return point;
}

Point put_point(const Arena& arena) {
    auto* const ring = arena.own_as<std::uint64_t>();
    const int peer = arena.peer;
    Point point{.name = "put, 8 B", .variants = {measured([ring, peer](std::uint64_t i) {
                                        npushmem_putmem(ring + i % ring_words, &i, sizeof i, peer);
                                    })}};
    if (arena.mapped != nullptr)
        point.variants.push_back(plain_store(arena.mapped_as<std::uint64_t>(), "store, mapped"));
    return point;
}

Point put_quiet_point(const Arena& arena) {
    auto* const ring = arena.own_as<std::uint64_t>();
    const int peer = arena.peer;
    Point point{.name = "put and quiet, 8 B", .variants = {measured([ring, peer](std::uint64_t i) {
                                                  npushmem_putmem(ring + i % ring_words, &i, sizeof i, peer);
                                                  npushmem_quiet();
                                              })}};
    if (arena.mapped != nullptr) point.variants.push_back(fenced_store(arena.mapped_as<std::uint64_t>()));
    return point;
}

Point p_quiet_point(const Arena& arena) {
    auto* const ring = arena.own_as<std::uint64_t>();
    const int peer = arena.peer;
    Point point{.name = "p and quiet, 8 B", .variants = {measured([ring, peer](std::uint64_t i) {
                                                npushmem_uint64_p(ring + i % ring_words, i, peer);
                                                npushmem_quiet();
                                            })}};
    if (arena.mapped != nullptr) point.variants.push_back(fenced_store(arena.mapped_as<std::uint64_t>()));
    return point;
}

// How many messages a second a network takes: 1000 may be under way at once.
Point stream_point(const Arena& arena) {
    constexpr std::uint64_t count = 1000;
    auto* const ring = arena.own_as<std::uint64_t>();
    const int peer = arena.peer;
    return {.name = "put, 8 B, in streams of 1000", .parts = count, .variants = {measured([ring, peer](std::uint64_t) {
                                                                        for (std::uint64_t i = 0; i < count; ++i)
                                                                            npushmem_putmem_nbi(ring + i % ring_words,
                                                                                                &i, sizeof i, peer);
                                                                        npushmem_quiet();
                                                                    })}};
}

std::vector<Point> points(const Arena& arena) {
    std::vector<Point> all{p_point(arena), put_point(arena), put_quiet_point(arena), p_quiet_point(arena)};
    if (arena.mapped == nullptr) all.push_back(stream_point(arena));
    return all;
}

}  // namespace

Case put_words_case() { return {"put", ring_bytes, points}; }

}  // namespace npushmem::bench
