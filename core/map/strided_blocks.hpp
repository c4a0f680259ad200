// SPDX-License-Identifier: BSD-3-Clause
// Strided blocks of bytes, remote and local, for strided transfers.
#pragma once

#include <cstdint>

#include "core/base/block_copy.hpp"

namespace npushmem {

// All in bytes, except `count`.
struct StridedBlocks {
    std::uint64_t offset;         // of the first block, in the PE's slice
    std::uint64_t remote_stride;  // between the beginnings of blocks; at least `bytes`, or any for one block
    std::uint64_t local_stride;
    std::uint64_t bytes;  // of a block
    std::uint64_t count;
};

}  // namespace npushmem
