// Eight bytes from another PE.
#include "bench/cases/case.hpp"
#include "bench/cases/variants.hpp"
#include "bench/cases/word_ring.hpp"
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

std::vector<Point> points(const Arena& arena) {
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

Case get_words_case() { return {"get", ring_bytes, points}; }

}  // namespace npushmem::bench
