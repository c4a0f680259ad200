// SPDX-License-Identifier: BSD-3-Clause
// Shapes of strided copies.
#pragma once

#include <cstddef>
#include <cstdint>

namespace npushmem::npu {

inline constexpr std::size_t ub_alignment = 32;          // bytes: UB addresses, plain lengths, gaps in UB
inline constexpr std::size_t cache_line = 64;            // bytes: scalar cache
inline constexpr std::size_t max_copy_blocks = 4095;     // per strided or padded copy
inline constexpr std::size_t max_strided_block = 65535;  // units of 32 bytes
inline constexpr std::size_t max_pad_block = 2097151;    // bytes

// Shape of a strided data_copy: `blocks` blocks of `block_units`, all in units of 32 bytes. A gap is the distance from
// the end of one block to the beginning of the next.
struct StridedShape {
    std::size_t blocks = 1;       // 1 to 4095
    std::size_t block_units = 1;  // 1 to 65535, of 32 bytes
    std::size_t source_gap_units = 0;
    std::size_t target_gap_units = 0;
};

// Shape of data_copy_pad: `blocks` blocks of `block_bytes`. In GM, consecutive blocks are `gm_gap_bytes` apart. In UB,
// each block begins on a 32-byte boundary, `ub_gap_units` further units of 32 bytes after the end of the previous one.
struct PadShape {
    std::size_t blocks = 1;       // 1 to 4095
    std::size_t block_bytes = 0;  // 1 to 2,097,151, a multiple of the element's size
    std::size_t gm_gap_bytes = 0;
    std::size_t ub_gap_units = 0;

    // Bytes that one block occupies in UB, including the padding up to the boundary.
    [[nodiscard]] constexpr std::size_t ub_block_bytes() const {
        return (block_bytes + ub_alignment - 1) / ub_alignment * ub_alignment;
    }
    [[nodiscard]] constexpr std::size_t ub_step() const { return ub_block_bytes() + ub_gap_units * ub_alignment; }
    [[nodiscard]] constexpr std::size_t gm_step() const { return block_bytes + gm_gap_bytes; }
    [[nodiscard]] constexpr std::size_t ub_span() const { return (blocks - 1) * ub_step() + ub_block_bytes(); }
    [[nodiscard]] constexpr std::size_t gm_span() const { return (blocks - 1) * gm_step() + block_bytes; }
};

}  // namespace npushmem::npu
