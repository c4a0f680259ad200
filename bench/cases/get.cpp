// SPDX-License-Identifier: BSD-3-Clause
// Eight bytes from another PE.
#include <cstring>

#include "bench/cases/baselines.hpp"
#include "bench/cases/case.hpp"
#include "npushmem.h"

namespace npushmem::bench {

namespace {

Variant plain_load(const std::uint64_t* from, const char* name) {
    return baseline(name, [from](std::uint64_t i) { do_not_optimize(from[i % ring_words]); });
}

Point point_of(const char* name, Variant subject, const Arena& arena) {
    Point point{.name = name, .variants = {std::move(subject)}};
    if (arena.mapped != nullptr) point.variants.push_back(plain_load(arena.mapped_as<std::uint64_t>(), "load, mapped"));
    point.variants.push_back(plain_load(private_ring(point), "load, private"));
    return point;
}

std::vector<Point> word_points(const Arena& arena) {
    const auto* const ring = arena.own_as<std::uint64_t>();
    const int peer = arena.peer;
    Variant g =
        measured([ring, peer](std::uint64_t i) { do_not_optimize(npushmem_uint64_g(ring + i % ring_words, peer)); });
    Variant get = measured([ring, peer](std::uint64_t i) {
        std::uint64_t value = 0;
        npushmem_getmem(&value, ring + i % ring_words, sizeof value, peer);
        do_not_optimize(value);
    });
    return {point_of("g, 8 B", std::move(g), arena), point_of("get, 8 B", std::move(get), arena)};
}

}  // namespace

Case get_words_case() { return {"get", ring_bytes, word_points}; }

// Bandwidth of get: between memory of this process and the symmetric memory of another PE.

namespace {

Point point_of(const Arena& arena, std::size_t bytes) {
    Point point{.name = block_name("get", bytes), .bytes = bytes};
    std::byte* const target = private_block(point, bytes);
    std::byte* const other = private_block(point, bytes);  // in the place of the symmetric memory
    point.variants.push_back(measured([target, bytes, own = arena.own, peer = arena.peer](std::uint64_t) {
        npushmem_getmem(target, own, bytes, peer);
    }));
    if (arena.mapped != nullptr)
        point.variants.push_back(baseline("memcpy, same memory", [target, bytes, mapped = arena.mapped](std::uint64_t) {
            std::memcpy(target, mapped, bytes);
        }));
    point.variants.push_back(
        baseline("memcpy, private", [target, other, bytes](std::uint64_t) { std::memcpy(target, other, bytes); }));
    return point;
}

std::vector<Point> block_points(const Arena& arena) {
    std::vector<Point> all;
    for (const std::size_t bytes : block_sizes) all.push_back(point_of(arena, bytes));
    return all;
}

}  // namespace

Case get_blocks_case() { return {"get", largest_block, block_points}; }

}  // namespace npushmem::bench
