// SPDX-License-Identifier: BSD-3-Clause
// Copies of equally distant blocks.
#pragma once

#include <cstddef>
#include <cstdint>
#include <cstring>
#include <type_traits>

namespace npushmem {

// The first block and the distance between blocks.
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
    // For these sizes, which most elements have, the compiler emits a load and a store.
    if (bytes == 8)
        each(std::integral_constant<std::size_t, 8>{});
    else if (bytes == 4)
        each(std::integral_constant<std::size_t, 4>{});
    else
        each(bytes);
}

}  // namespace npushmem
