// Copies of some kilobytes, between what is too short to gain and what memory limits. memcpy's way there costs as much
// again as our own checks, so that a put of 1 KiB would be a sixth slower than memcpy alone.
#pragma once

#include <cstddef>

namespace npushmem {

// As std::memcpy, for block_copy_least <= bytes <= block_copy_most.
using BlockCopy = void (*)(void* to, const void* from, std::size_t bytes);

inline constexpr std::size_t block_copy_least = 1024;
inline constexpr std::size_t block_copy_most = 16384;

// Is this a number of bytes for a BlockCopy?
constexpr bool suits_block_copy(std::size_t bytes) {
    return bytes - block_copy_least <= block_copy_most - block_copy_least;
}

// The best that this CPU has; memcpy itself where we have nothing better.
BlockCopy choose_block_copy();

}  // namespace npushmem
