// Bandwidth of get: between memory of this process and the symmetric memory of another PE.
#include <cstring>

#include "bench/cases/blocks.hpp"
#include "bench/cases/case.hpp"
#include "bench/cases/variants.hpp"
#include "npushmem.h"

namespace npushmem::bench {
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

std::vector<Point> points(const Arena& arena) {
    std::vector<Point> all;
    for (const std::size_t bytes : block_sizes) all.push_back(point_of(arena, bytes));
    return all;
}

}  // namespace

Case get_blocks_case() { return {"get", largest_block, points}; }

}  // namespace npushmem::bench
