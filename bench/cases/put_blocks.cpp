// Bandwidth of put: between memory of this process and the symmetric memory of another PE. Where that one is reached
// over a network, a put that has returned may still be under way: there, streams that end with quiet tell the
// bandwidth.
#include <cstring>
#include <string>

#include "bench/cases/blocks.hpp"
#include "bench/cases/case.hpp"
#include "bench/cases/variants.hpp"
#include "npushmem.h"

namespace npushmem::bench {
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

// All into the same place, as the networks' own programs do.
Point stream_of(const Arena& arena, std::size_t bytes, std::size_t count) {
    Point point{.name = std::to_string(count) + " x " + block_name("put", bytes) + ", quiet", .bytes = bytes * count};
    std::byte* const source = private_block(point, bytes);
    point.variants.push_back(measured([source, bytes, count, own = arena.own, peer = arena.peer](std::uint64_t) {
        for (std::size_t i = 0; i < count; ++i) npushmem_putmem_nbi(own, source, bytes, peer);
        npushmem_quiet();
    }));
    return point;
}

std::vector<Point> points(const Arena& arena) {
    std::vector<Point> all;
    for (const std::size_t bytes : block_sizes) all.push_back(point_of(arena, bytes));
    if (arena.mapped != nullptr) return all;
    all.push_back(stream_of(arena, 64 * KiB, 64));
    all.push_back(stream_of(arena, 1 * MiB, 16));
    return all;
}

}  // namespace

Case put_blocks_case() { return {"put", largest_block, points}; }

}  // namespace npushmem::bench
