// The loops of copy_nontemporal: whole lines, with the widest stores that go past the caches on this processor.
#pragma once

#include <cstddef>

namespace npushmem::moe {

inline constexpr std::size_t store_line = 64;

// Of the loads and stores.
enum class StoreWidth { bits_128, bits_256, bits_512 };

// What this processor has.
StoreWidth widest_store();

// Copies `lines` lines. `target` lies on a line's boundary, `source` anywhere. Nothing is ordered
// (nontemporal_copy.hpp).
//
// Loads and stores take one line of each of four blocks of a page in turn, and of two where four are not left: the
// memory then has several open rows to serve, and each block's reader ahead works. Measured on a Xeon of the fourth
// generation, 1 MiB copied so goes at 0.98 of a memcpy that is itself beyond its threshold for such stores; line after
// line, 0.85.
void nontemporal_lines(std::byte* target, const std::byte* source, std::size_t lines, StoreWidth width);

}  // namespace npushmem::moe
