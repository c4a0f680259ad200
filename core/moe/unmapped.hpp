// Which ranks a kernel of this PE cannot reach by loads and stores.
#pragma once

#include <algorithm>
#include <cstdint>
#include <vector>

#include "core/moe/symmetric_memory.hpp"
#include "npushmem/npu/fabric.hpp"

namespace npushmem::moe {

// Per rank, 1: its part of `symmetric` is not mapped here; empty if all are.
inline std::vector<std::uint8_t> unmapped_ranks(const npu::Fabric& fabric, const SymmetricMemory& memory,
                                                const std::byte* symmetric) {
    std::vector<std::uint8_t> unmapped(static_cast<std::size_t>(memory.n_pes()), 0);
    for (int pe = 0; pe < memory.n_pes(); ++pe) {
        unmapped[static_cast<std::size_t>(pe)] = fabric.remote(symmetric, pe) == nullptr ? 1 : 0;
    }
    if (std::ranges::count(unmapped, 1) == 0) unmapped.clear();
    return unmapped;
}

}  // namespace npushmem::moe
