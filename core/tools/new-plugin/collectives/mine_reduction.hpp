// SPDX-License-Identifier: BSD-3-Clause
// Reductions of two operands, for the types that this library has: integers, float and double.
#pragma once

#include <cstddef>
#include <cstdint>

#include "npushmem/plugin/collectives.h"

namespace mine_plugin {

// The set of types, bit NPUSHMEM_COLL_x, of an operation.
std::uint64_t types_of(std::uint32_t operation);
std::size_t bytes_of(std::uint32_t type);

// Combines `count` elements: into[i] = into[i] <operation> with[i]. Integers wrap around; NaN gives NaN.
void combine(std::uint32_t operation, std::uint32_t type, void* into, const void* with, std::size_t count);

}  // namespace mine_plugin
