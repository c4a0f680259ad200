// SPDX-License-Identifier: BSD-3-Clause
// Elementwise combination of two arrays, for reductions and scans.
#pragma once

#include <cstddef>
#include <cstdint>

namespace npushmem::coll {

enum class ReduceOperation : std::uint8_t { and_, or_, xor_, max, min, sum, prod };

// The kind of an element; types of equal representation share one.
enum class ReduceElement : std::uint8_t { i8, i16, i32, i64, u8, u16, u32, u64, f32, f64, f80, c32, c64 };

// into[i] = into[i] (operation) with[i]. The arrays are aligned to their elements and do not overlap.
using ReduceKernel = void (*)(void* into, const void* with, std::size_t count);

// Null when the operation is undefined for the elements (the bits of a float, the order of complex numbers).
ReduceKernel reduce_kernel_of(ReduceOperation operation, ReduceElement element);
std::size_t element_bytes(ReduceElement element);

}  // namespace npushmem::coll
