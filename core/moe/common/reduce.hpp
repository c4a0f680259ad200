// SPDX-License-Identifier: BSD-3-Clause
// The weighted sum of one token's rows, as fast as this CPU can: float accumulation from 0 in the order of `rows`, and
// one rounding to the output type at the end. All variants give the same bits as the scalar reference, because each
// column's additions are never reordered or fused, only done beside those of other columns.
#pragma once

#include <cstddef>
#include <span>
#include <string_view>

#include "core/moe/common/element.hpp"

namespace npushmem::moe {

// out[c] = sum over i of weights[i] * rows[i][c], c < columns. Each pointer needs only its element type's alignment.
// With count 0 the output is zero.
using ReduceFunction = void (*)(void* out, const void* const* rows, const float* weights, std::size_t count,
                                std::size_t columns);

struct ReduceVariant {
    std::string_view name;
    ReduceFunction (*function)(ElementType input, ElementType output);
};

// The variants that this CPU can run, fastest first; the last one runs everywhere.
std::span<const ReduceVariant> reduce_variants();

inline ReduceFunction best_reduce(ElementType input, ElementType output) {
    return reduce_variants().front().function(input, output);
}

}  // namespace npushmem::moe
