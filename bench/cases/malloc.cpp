// SPDX-License-Identifier: BSD-3-Clause
// Symmetric allocation, which is collective; beside its barriers, and malloc of one process.
#include <fmt/format.h>

#include <cstdlib>

#include "bench/cases/baselines.hpp"
#include "bench/cases/case.hpp"
#include "npushmem.h"

namespace npushmem::bench {
namespace {

Point point_of(std::size_t bytes) {
    Point point{.name = fmt::format("malloc and free {} B", bytes), .shared = true};
    point.variants.push_back(measured([bytes](std::uint64_t) { npushmem_free(npushmem_malloc(bytes)); }));
    point.variants.push_back(baseline("two barriers", [](std::uint64_t) {
        npushmem_barrier_all();
        npushmem_barrier_all();
    }));
    point.variants.push_back(baseline("malloc, private", [bytes](std::uint64_t) {
        void* object = std::malloc(bytes);
        do_not_optimize(object);
        std::free(object);
    }));
    return point;
}

std::vector<Point> points(const Arena& /*arena*/) { return {point_of(64), point_of(64 * KiB), point_of(4 * MiB)}; }

}  // namespace

Case malloc_case() { return {"malloc", 64, points}; }

}  // namespace npushmem::bench
