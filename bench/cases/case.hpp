// SPDX-License-Identifier: BSD-3-Clause
// One case: its group, its symmetric memory, and its points. A case is one function and one line in cases.cpp.
#pragma once

#include <cstddef>
#include <string_view>
#include <vector>

#include "bench/engine/engine.hpp"

namespace npushmem::bench {

// The memory of a case: symmetric, zeroed, and aligned to 2 MiB.
struct Arena {
    int pe = 0;
    int pes = 1;
    int peer = 0;                 // the next PE
    std::byte* own = nullptr;     // this PE's copy, whose address names all copies
    std::byte* mapped = nullptr;  // the peer's copy as this process sees it; null when it cannot be mapped
    bool all_mapped = false;      // every PE maps every PE; the same on all, so that shared points have equal variants

    template <class T>
    [[nodiscard]] T* own_as() const {
        return reinterpret_cast<T*>(own);
    }
    template <class T>
    [[nodiscard]] T* mapped_as() const {
        return reinterpret_cast<T*>(mapped);
    }
};

struct Case {
    std::string_view group;  // the subcommand it belongs to
    std::size_t bytes;       // of symmetric memory on each PE
    // Called on every PE. The points must be the same on all PEs; only their batches may differ.
    std::vector<Point> (*points)(const Arena& arena);
};

// In the order of the reports.
std::vector<Case> all_cases();

// A group of cases: one subcommand.
struct Group {
    std::string_view name;
    std::string_view summary;
};
std::vector<Group> all_groups();

}  // namespace npushmem::bench
