// Copies of some kilobytes, between what is too short to gain and what memory limits. memcpy's way there costs as much
// again as our own checks, so that a put of 1 KiB would be a sixth slower than memcpy alone.
#pragma once

#include <cstddef>

namespace npushmem {

// As std::memcpy, for min_block_copy <= bytes <= max_block_copy.
using BlockCopy = void (*)(void* to, const void* from, std::size_t bytes);

inline constexpr std::size_t min_block_copy = 1024;
inline constexpr std::size_t max_block_copy = 16384;

// Is this a number of bytes for a BlockCopy?
constexpr bool suits_block_copy(std::size_t bytes) { return bytes - min_block_copy <= max_block_copy - min_block_copy; }

// The best that this CPU has; memcpy itself where we have nothing better.
BlockCopy choose_block_copy();

}  // namespace npushmem
