// SPDX-License-Identifier: BSD-3-Clause
// The arithmetic of Core's vector operations, without the rules of the device. It is part of the library, so that every
// kernel computes the same bits whatever flags its file is compiled with.
//
// Each operation rounds its result once, to nearest, ties to even; int32_t wraps. `target` may be one of the sources;
// other overlaps are undefined.
#pragma once

#include <cstddef>

#include "npushmem/npu/export.hpp"
#include "npushmem/npu/numeric.hpp"

namespace npushmem::npu::vector_ops {

template <Number T>
NPUSHMEM_NPU_EXPORT void add(T* target, const T* a, const T* b, std::size_t count);
template <Number T>
NPUSHMEM_NPU_EXPORT void subtract(T* target, const T* a, const T* b, std::size_t count);
template <Number T>
NPUSHMEM_NPU_EXPORT void multiply(T* target, const T* a, const T* b, std::size_t count);
template <Number T>
NPUSHMEM_NPU_EXPORT void add_scalar(T* target, const T* source, T scalar, std::size_t count);
template <Number T>
NPUSHMEM_NPU_EXPORT void multiply_scalar(T* target, const T* source, T scalar, std::size_t count);
// target += a * b: the product is rounded to T, then the sum.
template <Number T>
NPUSHMEM_NPU_EXPORT void multiply_add(T* target, const T* a, const T* b, std::size_t count);
// target += scalar * source, computed in To: the product is rounded, then the sum. From is To, or To is float and From
// half or bfloat16.
template <Number To, Number From>
NPUSHMEM_NPU_EXPORT void axpy(To* target, const From* source, To scalar, std::size_t count);
// target = convert<To>(source); see numeric.hpp.
template <Number To, Number From>
NPUSHMEM_NPU_EXPORT void cast(To* target, const From* source, std::size_t count);
// target += source, each element atomically (relaxed).
template <Number T>
NPUSHMEM_NPU_EXPORT void atomic_accumulate(T* target, const T* source, std::size_t count);

}  // namespace npushmem::npu::vector_ops
