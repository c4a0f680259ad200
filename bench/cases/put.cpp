// SPDX-License-Identifier: BSD-3-Clause
// Eight bytes to another PE, with and without completion.
#include <atomic>
#include <cstring>
#include <string>

#include "bench/cases/baselines.hpp"
#include "bench/cases/case.hpp"
#include "npushmem.h"

namespace npushmem::bench {

namespace {

// A lower bound for any call into the library.
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

// Message rate of a network: at most 1000 messages are in flight.
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

std::vector<Point> word_points(const Arena& arena) {
    std::vector<Point> all{p_point(arena), put_point(arena), put_quiet_point(arena), p_quiet_point(arena)};
    if (arena.mapped == nullptr) all.push_back(stream_point(arena));
    return all;
}

}  // namespace

Case put_words_case() { return {"put", ring_bytes, word_points}; }

// Bandwidth of put: between memory of this process and the symmetric memory of another PE. Over a network a put may
// still be in flight when it returns; there, streams with a final quiet show the bandwidth.

namespace {

Point point_of(const Arena& arena, std::size_t bytes) {
    Point point{.name = block_name("put", bytes), .bytes = bytes};
    std::byte* const source = private_block(point, bytes);
    std::byte* const other = private_block(point, bytes);  // in the place of the symmetric memory
    point.variants.push_back(measured([source, bytes, own = arena.own, peer = arena.peer](std::uint64_t) {
        npushmem_putmem(own, source, bytes, peer);
    }));
    if (arena.mapped != nullptr)
        point.variants.push_back(baseline("memcpy, same memory", [source, bytes, mapped = arena.mapped](std::uint64_t) {
            std::memcpy(mapped, source, bytes);
        }));
    point.variants.push_back(
        baseline("memcpy, private", [source, other, bytes](std::uint64_t) { std::memcpy(other, source, bytes); }));
    return point;
}

// All puts write to the same place, as in the networks' own benchmarks.
Point stream_of(const Arena& arena, std::size_t bytes, std::size_t count) {
    Point point{.name = std::to_string(count) + " x " + block_name("put", bytes) + ", quiet", .bytes = bytes * count};
    std::byte* const source = private_block(point, bytes);
    point.variants.push_back(measured([source, bytes, count, own = arena.own, peer = arena.peer](std::uint64_t) {
        for (std::size_t i = 0; i < count; ++i) npushmem_putmem_nbi(own, source, bytes, peer);
        npushmem_quiet();
    }));
    return point;
}

// A column of a matrix, in one call and as a put for each element.
Point column_of(const Arena& arena) {
    constexpr std::size_t count = 1024;
    constexpr std::size_t stride = 8;
    Point point{.name = "iput, 1024 x 8 B, quiet", .bytes = count * 8};
    auto* const to = arena.own_as<std::uint64_t>();
    const auto* const source = reinterpret_cast<const std::uint64_t*>(private_block(point, count * 8));
    point.variants.push_back(measured([to, source, peer = arena.peer](std::uint64_t) {
        npushmem_iput64(to, source, stride, 1, count, peer);
        npushmem_quiet();
    }));
    point.variants.push_back(baseline("put of each element", [to, source, peer = arena.peer](std::uint64_t) {
        for (std::size_t i = 0; i < count; ++i) npushmem_putmem_nbi(to + i * stride, source + i, 8, peer);
        npushmem_quiet();
    }));
    return point;
}

std::vector<Point> block_points(const Arena& arena) {
    std::vector<Point> all;
    for (const std::size_t bytes : block_sizes) all.push_back(point_of(arena, bytes));
    if (arena.mapped != nullptr) return all;
    all.push_back(stream_of(arena, 64 * KiB, 64));
    all.push_back(stream_of(arena, 1 * MiB, 16));
    all.push_back(column_of(arena));
    return all;
}

}  // namespace

Case put_blocks_case() { return {"put", largest_block, block_points}; }

}  // namespace npushmem::bench
