// SPDX-License-Identifier: BSD-3-Clause
// Elementwise combination of two arrays, for reductions and scans.
#pragma once

#include <cstddef>
#include <cstdint>

namespace npushmem::coll {

enum class ReduceOperation : std::uint8_t { and_, or_, xor_, max, min, sum, prod };

// The kind of an element; types of equal representation share one.
enum class ReduceElement : std::uint8_t { i8, i16, i32, i64, u8, u16, u32, u64, f16, bf16, f32, f64, f80, c32, c64 };

// into[i] = into[i] (operation) with[i]. The arrays are aligned to their elements and do not overlap. `into` has
// accumulators: float for f16 and bf16, otherwise elements.
using ReduceKernel = void (*)(void* into, const void* with, std::size_t count);

// Null when the operation is undefined for the elements (the bits of a float, the order of complex numbers).
ReduceKernel reduce_kernel_of(ReduceOperation operation, ReduceElement element);
std::size_t element_bytes(ReduceElement element);

// A reduction of arrays, one operand after the other. Its accumulators are rounded to elements once, at the end.
struct Reduction {
    Reduction(ReduceOperation operation, ReduceElement element);

    // Makes accumulators of the first operand.
    void begin(void* accumulators, const void* first, std::size_t count) const;
    // Makes elements of accumulators. The arrays may be the same unless the reduction widens.
    void finish(void* elements, const void* accumulators, std::size_t count) const;
    // Whether accumulators differ from elements.
    [[nodiscard]] bool widens() const { return widen != nullptr; }

    ReduceKernel kernel;
    std::size_t size;  // of an element
    std::size_t accumulator_size;
    void (*widen)(void* accumulators, const void* elements, std::size_t count) = nullptr;
    void (*narrow)(void* elements, const void* accumulators, std::size_t count) = nullptr;
};

}  // namespace npushmem::coll
