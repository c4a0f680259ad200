// SPDX-License-Identifier: BSD-3-Clause
// The gradients of an expert's row y, to which combine applies a weight: out = ... + weight * y. All CPUs give the same
// bits.
#pragma once

#include <cstddef>
#include <vector>

#include "core/moe/common/element.hpp"
#include "core/moe/common/reduce.hpp"

namespace npushmem::moe {

// Of rows of one type. Not thread-safe.
class RowGradients {
public:
    RowGradients(ElementType type, std::size_t hidden);

    // Of y: target[c] = 0 + weight * gradient[c] in float, rounded once.
    void scale(void* target, const void* gradient, float weight) const;
    // Of the weight: the sum over c of y[c] * gradient[c]. Each product is exact in double. Eight sums in double, of
    // the columns c with equal c mod 8, ascending, become one: 0 + 4, 1 + 5, 2 + 6, 3 + 7, of these 0 + 2 and 1 + 3,
    // and of these 0 + 1. It is rounded once to float.
    [[nodiscard]] float product(const void* y, const void* gradient);

private:
    SumShape shape_;
    ReduceFunction scale_;
    ReduceFunction widen_;
    std::vector<float> y_;
    std::vector<float> gradient_;
};

}  // namespace npushmem::moe
