// The scalar truth that every faster path is compared with: the weighted sum of one token's rows, written as plainly as
// possible.
#pragma once

#include <cstdint>
#include <span>

namespace npushmem::moe {

// Float accumulation from 0 in ascending order of k; an expert id of -1 contributes nothing, whatever its weight.
// `value(k)` is the token's k-th row at the column asked for, already as float.
template <class Value>
float reference_sum(std::span<const std::int32_t> experts, std::span<const float> weights, const Value& value) {
    float sum = 0.0F;
    for (std::size_t k = 0; k < experts.size(); ++k) {
        if (experts[k] < 0) continue;
        const float product = weights[k] * value(k);
        sum += product;
    }
    return sum;
}

struct DoubleSum {
    double sum = 0;
    double magnitude = 0;  // sum of |w * x|, for the error bound
};

// The same in double precision.
template <class Value>
DoubleSum reference_double(std::span<const std::int32_t> experts, std::span<const float> weights, const Value& value) {
    DoubleSum result;
    for (std::size_t k = 0; k < experts.size(); ++k) {
        if (experts[k] < 0) continue;
        const double product = static_cast<double>(weights[k]) * static_cast<double>(value(k));
        result.sum += product;
        result.magnitude += product < 0 ? -product : product;
    }
    return result;
}

}  // namespace npushmem::moe
