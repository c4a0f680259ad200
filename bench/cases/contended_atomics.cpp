// All PEs add to one word of PE 0 at the same time.
#include <atomic>

#include "bench/cases/case.hpp"
#include "bench/cases/variants.hpp"
#include "npushmem.h"

namespace npushmem::bench {
namespace {

std::vector<Point> points(const Arena& arena) {
    auto* const word = arena.own_as<std::uint64_t>();
    Point point{.name = "fetch_add, all to one", .shared = true, .variants = {measured([word](std::uint64_t) {
                                                                     do_not_optimize(
                                                                         npushmem_uint64_atomic_fetch_add(word, 1, 0));
                                                                 })}};
    auto* const target = static_cast<std::uint64_t*>(npushmem_ptr(word, 0));
    if (arena.all_mapped)
        point.variants.push_back(baseline("same, mapped", [target](std::uint64_t) {
            // Relaxed: only the cost is of interest.
            do_not_optimize(std::atomic_ref(*target).fetch_add(1, std::memory_order_relaxed));
        }));
    return {point};
}

}  // namespace

Case contended_atomics_case() { return {"atomics", sizeof(std::uint64_t), points}; }

}  // namespace npushmem::bench
