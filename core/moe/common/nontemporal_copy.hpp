// SPDX-License-Identifier: BSD-3-Clause
// Copies whose stores bypass the caches. They halve the memory traffic of a payload that this core does not read again
// soon: an ordinary store first reads the line that it overwrites.
#pragma once

#include <cstddef>

namespace npushmem::moe {

// Like memcpy, but the stores are unordered until nontemporal_fence().
void copy_nontemporal(std::byte* target, const std::byte* source, std::size_t bytes);

// Everything this thread copied with copy_nontemporal is visible before any store that follows.
void nontemporal_fence();

// Unit of the loops of copy_nontemporal.

inline constexpr std::size_t store_line = 64;

// Width of the loads and stores.
enum class StoreWidth { bits_128, bits_256, bits_512 };

// The widest that this processor supports.
StoreWidth widest_store();

// Copies `lines` lines. `target` is aligned to a line, `source` need not be. The stores are unordered.
//
// Loads and stores take one line of each of four page-sized blocks in turn (two where fewer than four are left). The
// memory then serves several open rows, and the prefetcher works on each block. Measured on a Xeon of the fourth
// generation with 1 MiB: 0.98 of the speed of a memcpy that itself uses such stores; 0.85 when copied line after line.
void nontemporal_lines(std::byte* target, const std::byte* source, std::size_t lines, StoreWidth width);

}  // namespace npushmem::moe
