// SPDX-License-Identifier: BSD-3-Clause
// The element types of the vector operations and the conversions between them.
#pragma once

#include <concepts>
#include <cstdint>
#include <limits>

#include "npushmem/npu/bfloat16.hpp"
#include "npushmem/npu/half.hpp"

namespace npushmem::npu {

// Types of add, multiply, cast, ... (Copies and fills accept every trivially copyable type.)
template <class T>
concept Number =
    std::same_as<T, float> || std::same_as<T, half> || std::same_as<T, bfloat16> || std::same_as<T, std::int32_t>;

namespace detail {

constexpr float magnitude_of(float value) { return value < 0 ? -value : value; }

// Rounds to nearest, ties to even; saturates; NaN becomes 0.
constexpr std::int32_t round_to_int(float value) {
    constexpr float no_fraction = 8388608.0F;  // 2^23: from here on every float is an integer
    const float pushed = value < 0 ? (value - no_fraction) + no_fraction : (value + no_fraction) - no_fraction;
    const float rounded = magnitude_of(value) < no_fraction ? pushed : value;
    if (rounded >= 2147483648.0F) return std::numeric_limits<std::int32_t>::max();
    if (rounded < -2147483648.0F) return std::numeric_limits<std::int32_t>::min();
    return rounded == rounded ? static_cast<std::int32_t>(rounded) : 0;
}

}  // namespace detail

// Converts with a single rounding to nearest, ties to even. Conversions to int32_t saturate, and NaN becomes 0.
template <Number To, Number From>
constexpr To convert(From value) {
    if constexpr (std::same_as<To, From>)
        return value;
    else if constexpr (std::same_as<To, std::int32_t>)
        return detail::round_to_int(static_cast<float>(value));
    else if constexpr (std::same_as<To, float>)
        return static_cast<float>(value);
    else if constexpr (std::same_as<From, std::int32_t>)
        return To::from_double(value);
    else
        return To(static_cast<float>(value));
}

}  // namespace npushmem::npu
