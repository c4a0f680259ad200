// SPDX-License-Identifier: BSD-3-Clause
// Cost of a context: the same call through a context and on the default context.
#include <memory>
#include <vector>

#include "bench/cases/baselines.hpp"
#include "bench/cases/case.hpp"
#include "npushmem.h"

namespace npushmem::bench {
namespace {

constexpr std::size_t block = 1024;

// A context that lives as long as the point.
npushmem_ctx_t context_of(Point& point) {
    npushmem_ctx_t ctx = NPUSHMEM_CTX_INVALID;
    npushmem_ctx_create(0, &ctx);
    point.memory.emplace_back(static_cast<void*>(ctx),
                              [](void* made) { npushmem_ctx_destroy(static_cast<npushmem_ctx_t>(made)); });
    return ctx;
}

template <class OnContext, class OnDefault>
Point point_of(const char* name, std::uint64_t bytes, OnContext on_context, OnDefault on_default) {
    Point point{.name = name, .bytes = bytes};
    const npushmem_ctx_t ctx = context_of(point);
    point.variants.push_back(measured([ctx, on_context](std::uint64_t i) { on_context(ctx, i); }));
    point.variants.push_back(baseline("the default context", on_default));
    return point;
}

Point p_point(std::uint64_t* ring, int peer) {
    return point_of(
        "p, 8 B", 0,
        [=](npushmem_ctx_t ctx, std::uint64_t i) { npushmem_ctx_uint64_p(ctx, ring + i % ring_words, i, peer); },
        [=](std::uint64_t i) { npushmem_uint64_p(ring + i % ring_words, i, peer); });
}

Point put_point(std::uint64_t* ring, int peer) {
    return point_of(
        "put, 8 B", 0,
        [=](npushmem_ctx_t ctx, std::uint64_t i) { npushmem_ctx_putmem(ctx, ring + i % ring_words, &i, 8, peer); },
        [=](std::uint64_t i) { npushmem_putmem(ring + i % ring_words, &i, 8, peer); });
}

Point block_point(std::uint64_t* ring, int peer) {
    static_assert(block <= ring_bytes);
    const auto source = std::make_shared<std::vector<std::byte>>(block);
    const std::byte* const from = source->data();
    Point point = point_of(
        "put, 1 KiB", block,
        [=](npushmem_ctx_t ctx, std::uint64_t) { npushmem_ctx_putmem(ctx, ring, from, block, peer); },
        [=](std::uint64_t) { npushmem_putmem(ring, from, block, peer); });
    point.memory.push_back(source);
    return point;
}

Point fetch_add_point(std::uint64_t* ring, int peer) {
    return point_of(
        "fetch_add, 8 B", 0,
        [=](npushmem_ctx_t ctx, std::uint64_t i) {
            do_not_optimize(npushmem_ctx_uint64_atomic_fetch_add(ctx, ring + i % ring_words, 1, peer));
        },
        [=](std::uint64_t i) { do_not_optimize(npushmem_uint64_atomic_fetch_add(ring + i % ring_words, 1, peer)); });
}

Point quiet_point(std::uint64_t* ring, int peer) {
    return point_of(
        "p and quiet, 8 B", 0,
        [=](npushmem_ctx_t ctx, std::uint64_t i) {
            npushmem_ctx_uint64_p(ctx, ring + i % ring_words, i, peer);
            npushmem_ctx_quiet(ctx);
        },
        [=](std::uint64_t i) {
            npushmem_uint64_p(ring + i % ring_words, i, peer);
            npushmem_quiet();
        });
}

Point life_point(std::uint64_t* ring, int peer) {
    Point point{.name = "create, p, destroy"};
    point.variants.push_back(measured([=](std::uint64_t i) {
        npushmem_ctx_t ctx = NPUSHMEM_CTX_INVALID;
        npushmem_ctx_create(0, &ctx);
        npushmem_ctx_uint64_p(ctx, ring + i % ring_words, i, peer);
        npushmem_ctx_destroy(ctx);
    }));
    point.variants.push_back(baseline("p and quiet, the default context", [=](std::uint64_t i) {
        npushmem_uint64_p(ring + i % ring_words, i, peer);
        npushmem_quiet();
    }));
    return point;
}

std::vector<Point> points(const Arena& arena) {
    auto* const ring = arena.own_as<std::uint64_t>();
    const int peer = arena.peer;
    return {p_point(ring, peer),         put_point(ring, peer),   block_point(ring, peer),
            fetch_add_point(ring, peer), quiet_point(ring, peer), life_point(ring, peer)};
}

}  // namespace

Case contexts_case() { return {"contexts", ring_bytes, points}; }

}  // namespace npushmem::bench
