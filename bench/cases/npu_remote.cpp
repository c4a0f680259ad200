// SPDX-License-Identifier: BSD-3-Clause
// Operations of kernels on a PE that is not mapped: by the proxy, beside direct mode and the same calls of the host.
// Each batch ends when all operations are complete.
#include <stdexcept>

#include "bench/cases/baselines.hpp"
#include "bench/cases/case.hpp"
#include "bench/cases/npu_batch.hpp"
#include "npushmem.h"

namespace npushmem::bench {
namespace {

constexpr std::size_t block = 64 * 1024;
constexpr int many_cores = 8;

std::shared_ptr<npu::Device> device_by(npu::RemoteMode way, int vector_cores) {
    npu::DeviceConfig config;
    config.remote_mode = way;
    return device_of(vector_cores, config);
}

// Calls `on_core(core, i)` on each core for its share of the iterations, and `on_host(i)` on the host.
template <class OnCore, class OnHost>
Point point_of(const char* name, std::size_t bytes, int cores, OnCore on_core, OnHost on_host) {
    Point point{.name = name, .bytes = bytes};
    const auto share = [on_core, cores](npu::Core& core, std::uint64_t iterations) {
        for (auto i = static_cast<std::uint64_t>(core.index()); i < iterations; i += static_cast<std::uint64_t>(cores))
            on_core(core, i);
    };
    point.variants.push_back({"proxy", launched(device_by(npu::RemoteMode::proxy, cores), share), false});
    point.variants.push_back({"direct", launched(device_by(npu::RemoteMode::direct, cores), share), true});
    point.variants.push_back({"host",
                              [on_host](std::uint64_t iterations) {
                                  for (std::uint64_t i = 0; i < iterations; ++i) on_host(i);
                                  npushmem_quiet();
                              },
                              true});
    return point;
}

Point put_point(const char* name, std::uint64_t* ring, int cores, int peer) {
    return point_of(
        name, 0, cores,
        [=](npu::Core& core, std::uint64_t i) { core.put(ring + i % ring_words, ring + i % ring_words, 1, peer); },
        [=](std::uint64_t i) { npushmem_putmem(ring + i % ring_words, ring + i % ring_words, 8, peer); });
}

Point put_and_quiet_point(std::uint64_t* ring, int peer) {
    return point_of(
        "put and quiet, 8 B", 0, 1,
        [=](npu::Core& core, std::uint64_t i) {
            core.put(ring + i % ring_words, ring + i % ring_words, 1, peer);
            core.quiet();
        },
        [=](std::uint64_t i) {
            npushmem_putmem(ring + i % ring_words, ring + i % ring_words, 8, peer);
            npushmem_quiet();
        });
}

Point put_signal_point(std::uint64_t* ring, int peer) {
    return point_of(
        "put_signal, 8 B", 0, 1,
        [=](npu::Core& core, std::uint64_t i) {
            core.put_signal(ring + 1 + i % (ring_words - 1), ring + 1 + i % (ring_words - 1), 1, ring, i, peer);
        },
        [=](std::uint64_t i) {
            npushmem_putmem_signal(ring + 1 + i % (ring_words - 1), ring + 1 + i % (ring_words - 1), 8, ring, i,
                                   NPUSHMEM_SIGNAL_OP_SET, peer);
        });
}

Point block_point(std::byte* memory, int peer) {
    return point_of(
        "put, 64 KiB", block, 1, [=](npu::Core& core, std::uint64_t) { core.put(memory, memory, block, peer); },
        [=](std::uint64_t) { npushmem_putmem(memory, memory, block, peer); });
}

Point fetch_add_point(const char* name, std::uint64_t* ring, int cores, int peer) {
    return point_of(
        name, 0, cores,
        [=](npu::Core& core, std::uint64_t i) {
            do_not_optimize(core.atomic_fetch_add_on(ring + i % ring_words, 1, peer));
        },
        [=](std::uint64_t i) { do_not_optimize(npushmem_uint64_atomic_fetch_add(ring + i % ring_words, 1, peer)); });
}

// Connects and creates threads before the engine calibrates the batch.
void warm_up(const std::vector<Point>& all) {
    for (const Point& point : all)
        for (const Variant& variant : point.variants)
            for (int i = 0; i < 3; ++i) variant.batch(many_cores);
}

std::vector<Point> points(const Arena& arena) {
    if (arena.pe == arena.peer || arena.mapped != nullptr)
        throw std::runtime_error(
            "PE 1 must be on another host, for instance npushmem-run -n 2 --nodes 2 with NPUSHMEM_REMOTE_TRANSPORT");
    auto* const ring = arena.own_as<std::uint64_t>();
    const int peer = arena.peer;
    std::vector<Point> all{put_point("put, 8 B", ring, 1, peer),
                           put_point("put, 8 B, 8 cores", ring, many_cores, peer),
                           put_and_quiet_point(ring, peer),
                           put_signal_point(ring, peer),
                           block_point(arena.own + ring_bytes, peer),
                           fetch_add_point("fetch_add, 8 B", ring, 1, peer),
                           fetch_add_point("fetch_add, 8 B, 8 cores", ring, many_cores, peer)};
    if (arena.pe == 0) warm_up(all);
    return all;
}

}  // namespace

Case npu_remote_case() { return {"npu-remote", ring_bytes + block, points}; }

}  // namespace npushmem::bench
