// What the bandwidth cases share: sizes, names, and memory of this process alone.
#pragma once

#include <array>
#include <cstddef>
#include <string>

#include "bench/engine/point.hpp"

namespace npushmem::bench {

inline constexpr std::size_t KiB = 1024;
inline constexpr std::size_t MiB = 1024 * KiB;
inline constexpr std::array<std::size_t, 8> block_sizes{1 * KiB,   4 * KiB, 16 * KiB, 64 * KiB,
                                                        256 * KiB, 1 * MiB, 4 * MiB,  8 * MiB};
inline constexpr std::size_t largest_block = block_sizes.back();

// "put 64 KiB"
std::string block_name(const char* operation, std::size_t bytes);

// As a program gets it from malloc, but aligned to a page like symmetric memory, and touched. The point keeps it.
std::byte* private_block(Point& point, std::size_t bytes);

}  // namespace npushmem::bench
