// Strided blocks of bytes at equal distances, at a PE and here: what strided transfers move.
#pragma once

#include <cstddef>
#include <cstdint>
#include <cstring>
#include <type_traits>

namespace npushmem {

// All in bytes, except `count`.
struct StridedBlocks {
    std::uint64_t offset;         // of the first one, in the PE's slice
    std::uint64_t remote_stride;  // from the beginning of one block to the next; at least `bytes`, or any for one block
    std::uint64_t local_stride;
    std::uint64_t bytes;  // of a block
    std::uint64_t count;
};

// Where blocks begin, and how far apart.
template <class Byte>
struct StridedBuffer {
    Byte* first;
    std::uint64_t stride;
};

inline void copy_blocks(StridedBuffer<std::byte> to, StridedBuffer<const std::byte> from, std::uint64_t bytes,
                        std::uint64_t count) {
    const auto each = [&](auto size) {
        for (std::uint64_t i = 0; i < count; ++i)
            std::memcpy(to.first + i * to.stride, from.first + i * from.stride, size);
    };
    // Of the sizes of most elements the compiler makes a load and a store.
    if (bytes == 8)
        each(std::integral_constant<std::size_t, 8>{});
    else if (bytes == 4)
        each(std::integral_constant<std::size_t, 4>{});
    else
        each(bytes);
}

}  // namespace npushmem
