// SPDX-License-Identifier: BSD-3-Clause
// The weighted sum of one token's rows, as fast as this CPU can: float accumulation from 0 in the order of `rows`, and
// one rounding to the output type at the end. All variants give the same bits as the scalar reference, because each
// column's additions are never reordered or fused, only done beside those of other columns.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <span>
#include <string_view>

#include "core/moe/common/element.hpp"
#include "core/moe/common/routing.hpp"

namespace npushmem::moe {

// The columns of a sum, and of quantized rows the elements that share a scale.
struct SumShape {
    std::size_t columns = 0;
    std::size_t scale_block = 0;
    // The sums are stored past the caches where a variant can do that, as copy_nontemporal() stores rows: a
    // nontemporal_fence() orders them before later stores.
    bool streaming = false;
};

// out[c] = sum over i of weights[i] * rows[i][c], c < columns. The value of a quantized row's element is its own times
// its scale, in float. Each pointer needs only its element type's alignment. With count 0 the output is zero. `next`:
// rows of the next call, of as many columns; they are loaded into the cache meanwhile.
using ReduceFunction = void (*)(void* out, const void* const* rows, const float* weights, std::size_t count,
                                const SumShape& shape, std::span<const void* const> next);

// The same for a tree of sums: those of the rows before ends[0], between ends[0] and ends[1] and so on, at least one
// row each, are rounded to the type of the rows and then added in this order. Not for quantized rows.
using TreeFunction = void (*)(void* out, const void* const* rows, const float* weights,
                              std::span<const std::uint8_t> ends, const SumShape& shape,
                              std::span<const void* const> next);

struct Reduction {
    ReduceFunction function = nullptr;
    SumShape shape;
    // Through the unified buffer (staged_sums.hpp), from and to these types, instead of by the function.
    bool staged = false;
    ElementType input = ElementType::bfloat16;
    ElementType output = ElementType::bfloat16;
    TreeFunction tree = nullptr;  // null: no tree is summed
};

// The rows of one sum, or of a tree of sums.
struct WeightedRows {
    std::array<const void*, max_top_k> rows;
    std::array<float, max_top_k> weights;
    std::array<std::uint8_t, max_top_k> ends;  // of a tree
    std::size_t count = 0;
    std::size_t sums = 0;  // of a tree; 0: one sum

    void add(const void* row, float weight) {
        rows[count] = row;
        weights[count++] = weight;
    }
    // Ends a sum of a tree with the row that was added last.
    void end_sum() { ends[sums++] = static_cast<std::uint8_t>(count); }
    void clear() { count = sums = 0; }
};

// Computes the sums begin to end - 1: gather(i, rows) adds the rows of sum i, and target(i) is the address of its
// output, which complete(i) may use.
template <class Gather, class Target, class Complete>
void reduce_each(const Reduction& reduction, std::uint64_t begin, std::uint64_t end, const Gather& gather,
                 const Target& target, const Complete& complete) {
    std::array<WeightedRows, 2> sums;
    if (begin < end) gather(begin, sums[begin % 2]);
    for (std::uint64_t i = begin; i < end; ++i) {
        const WeightedRows& sum = sums[i % 2];
        WeightedRows& next = sums[(i + 1) % 2];
        next.clear();
        if (i + 1 < end) gather(i + 1, next);
        const std::span ahead = std::span(next.rows).first(next.count);
        if (sum.sums == 0)
            reduction.function(target(i), sum.rows.data(), sum.weights.data(), sum.count, reduction.shape, ahead);
        else
            reduction.tree(target(i), sum.rows.data(), sum.weights.data(), std::span(sum.ends).first(sum.sums),
                           reduction.shape, ahead);
        complete(i);
    }
}

struct ReduceVariant {
    std::string_view name;
    ReduceFunction (*function)(ElementType input, ElementType output);
    TreeFunction (*tree)(ElementType input, ElementType output);
};

// The variants that this CPU can run, fastest first; the last one runs everywhere.
std::span<const ReduceVariant> reduce_variants();

inline ReduceFunction best_reduce(ElementType input, ElementType output) {
    return reduce_variants().front().function(input, output);
}
inline TreeFunction best_tree(ElementType input, ElementType output) {
    return reduce_variants().front().tree(input, output);
}

}  // namespace npushmem::moe
