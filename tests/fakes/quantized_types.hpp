// SPDX-License-Identifier: BSD-3-Clause
// The types of quantized rows by their definitions, for references: shares no code with the library. E4M3 and E5M2: OCP
// 8-bit Floating Point Specification, revision 1.0.
#pragma once

#include <algorithm>
#include <cmath>
#include <cstddef>
#include <limits>
#include <vector>

namespace npushmem::fakes {

// The numbers are those of NPUSHMEMX_MOE_E4M3, _E5M2 and _INT8.
struct QuantizedType {
    int number;
    double largest;
    double relative_error;  // half the unit of the fraction
    double absolute_error;  // half the smallest step
    int fraction_bits;      // 0: an integer
    int bias;
};

constexpr QuantizedType quantized_type(int number) {
    switch (number) {
        case 4: return {4, 448, 0x1p-4, 0x1p-10, 3, 7};
        case 5: return {5, 57344, 0x1p-3, 0x1p-17, 2, 15};
        default: return {6, 127, 0, 0.5, 0, 0};
    }
}

// pattern: 0 to 255. Infinities and NaNs included.
inline double value_of(const QuantizedType& type, int pattern) {
    if (type.fraction_bits == 0) return pattern < 128 ? pattern : pattern - 256;
    const int exponent = (pattern & 0x7F) >> type.fraction_bits;
    const int fraction = pattern & ((1 << type.fraction_bits) - 1);
    const int step = 1 - type.bias - type.fraction_bits;
    const double magnitude = exponent == 0 ? std::ldexp(fraction, step)
                                           : std::ldexp((1 << type.fraction_bits) + fraction, exponent - 1 + step);
    if (magnitude > type.largest) {
        const bool infinite = type.number == 5 && fraction == 0;
        if (!infinite) return std::numeric_limits<double>::quiet_NaN();
        return pattern < 128 ? HUGE_VAL : -HUGE_VAL;
    }
    return pattern < 128 ? magnitude : -magnitude;
}

// The documented bound of the error of a finite value.
inline double error_bound(const QuantizedType& type, double value, double scale) {
    const double magnitude = std::abs(value);
    return magnitude * type.relative_error + scale * type.absolute_error + magnitude * 0x1p-20 + 0x1p-149;
}

// The nearest value of the type, ties to even, at most the largest; of NaN and infinity what the type has for them.
inline double nearest_value(const QuantizedType& type, float value) {
    if (!std::isfinite(value)) return type.number == 5 ? value : std::numeric_limits<double>::quiet_NaN();
    const double magnitude = std::abs(value);
    const int lowest = 1 - type.bias;
    const int exponent = type.fraction_bits == 0 ? 0
                         : magnitude == 0        ? lowest
                                                 : std::max(std::ilogb(magnitude), lowest);
    const double step = std::ldexp(1.0, exponent - type.fraction_bits);
    return std::copysign(std::min(std::nearbyint(magnitude / step) * step, type.largest), value);
}

// What is read of a row after its quantization: by the documented steps, in float.
inline std::vector<float> quantized_and_back(const QuantizedType& type, const std::vector<float>& row,
                                             std::size_t block) {
    const auto largest = static_cast<float>(type.largest);
    std::vector<float> back;
    for (std::size_t first = 0; first < row.size(); first += block) {
        const std::size_t end = std::min(first + block, row.size());
        float magnitude = 0;
        bool finite = true;
        for (std::size_t c = first; c < end; ++c) {
            if (std::isfinite(row[c])) magnitude = std::max(magnitude, std::abs(row[c]));
            finite = finite && std::isfinite(row[c]);
        }
        float scale = magnitude == 0 ? 1.0F : std::max(magnitude / largest, 0x1p-126F);
        while (std::isinf(scale * largest)) scale = std::nextafter(scale, 0.0F);
        if (!finite && type.fraction_bits == 0) scale = std::numeric_limits<float>::quiet_NaN();
        const float inverse = 1.0F / scale;
        for (std::size_t c = first; c < end; ++c)
            back.push_back(scale * static_cast<float>(nearest_value(type, row[c] * inverse)));
    }
    return back;
}

}  // namespace npushmem::fakes
