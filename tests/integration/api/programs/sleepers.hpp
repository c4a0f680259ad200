// SPDX-License-Identifier: BSD-3-Clause
// The sleeping waits of a PE, as its slice shows them.
#pragma once

#include <cstddef>
#include <cstdint>

#include "core/memory/control_block.hpp"

namespace npushmem::api_test {

// Returns those in the slice that contains a mapped object. A control block begins the slice.
inline const AwaitedBytes& awaited_bytes(const void* mapped) {
    const auto* page =
        reinterpret_cast<const std::byte*>(reinterpret_cast<std::uintptr_t>(mapped) & ~(control_bytes - 1));
    while (reinterpret_cast<const ControlBlock*>(page)->magic != control_magic) page -= control_bytes;
    return reinterpret_cast<const ControlBlock*>(page)->awaited;
}

}  // namespace npushmem::api_test
