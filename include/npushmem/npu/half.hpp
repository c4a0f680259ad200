// SPDX-License-Identifier: BSD-3-Clause
// IEEE binary16 as a value type: storage of 16 bits, arithmetic in float with one rounding per operation.
#pragma once

#include <bit>
#include <compare>
#include <cstdint>

#include "npushmem/npu/round_to_odd.hpp"

namespace npushmem::npu {

// Every conversion to half rounds to nearest, ties to even; overflow gives infinity, NaN stays NaN (quiet).
class half {
public:
    constexpr half() = default;
    constexpr explicit half(float value) : bits_(encode(value)) {}

    // Rounds once from double, not through a rounded float.
    static constexpr half from_double(double value) { return half(detail::round_to_odd(value)); }
    static constexpr half from_bits(std::uint16_t bits) {
        half result;
        result.bits_ = bits;
        return result;
    }

    [[nodiscard]] constexpr std::uint16_t bits() const { return bits_; }
    constexpr explicit operator float() const { return decode(bits_); }

private:
    static constexpr std::uint32_t half_of_smallest_overflow = 0x477FF000;  // 65520.0f: rounds to infinity
    static constexpr std::uint32_t smallest_normal = 0x38800000;            // 2^-14
    static constexpr std::uint32_t infinity = 0x7F800000;

    // Only branches that a compiler can turn into selects: this runs in vector loops.
    static constexpr std::uint16_t encode(float value) {
        const auto word = std::bit_cast<std::uint32_t>(value);
        const std::uint32_t magnitude = word & 0x7FFFFFFFU;
        // Rebases the exponent by 127 - 15 and drops 13 bits of the mantissa; a carry correctly increments the
        // exponent.
        const std::uint32_t normal = (magnitude - (112U << 23) + 0xFFFU + ((magnitude >> 13) & 1U)) >> 13;
        // The unit in the last place of 0.5f is that of a subnormal half (2^-24), so the addition rounds.
        const float shifted = std::bit_cast<float>(magnitude < smallest_normal ? magnitude : 0U) + 0.5F;
        const std::uint32_t subnormal = std::bit_cast<std::uint32_t>(shifted) - std::bit_cast<std::uint32_t>(0.5F);
        std::uint32_t result = magnitude < smallest_normal ? subnormal : normal;
        result = magnitude >= half_of_smallest_overflow ? 0x7C00U : result;
        result = magnitude > infinity ? (0x7E00U | ((magnitude >> 13) & 0x3FFU)) : result;
        return static_cast<std::uint16_t>(result | ((word >> 16) & 0x8000U));
    }

    static constexpr float decode(std::uint16_t bits) {
        const std::uint32_t shifted = (bits & 0x7FFFU) << 13;
        const std::uint32_t exponent = shifted & (0x7C00U << 13);
        const std::uint32_t rebased = shifted + (112U << 23);
        const std::uint32_t special = rebased + (112U << 23);  // infinity and NaN
        const float subnormal = std::bit_cast<float>(rebased + (1U << 23)) - std::bit_cast<float>(113U << 23);
        std::uint32_t magnitude = exponent == (0x7C00U << 13) ? special : rebased;
        magnitude = exponent == 0 ? std::bit_cast<std::uint32_t>(subnormal) : magnitude;
        return std::bit_cast<float>(magnitude | (static_cast<std::uint32_t>(bits & 0x8000U) << 16));
    }

    std::uint16_t bits_ = 0;
};

static_assert(sizeof(half) == 2);

constexpr half operator+(half a, half b) { return half(static_cast<float>(a) + static_cast<float>(b)); }
constexpr half operator-(half a, half b) { return half(static_cast<float>(a) - static_cast<float>(b)); }
constexpr half operator*(half a, half b) { return half(static_cast<float>(a) * static_cast<float>(b)); }
constexpr half operator/(half a, half b) { return half(static_cast<float>(a) / static_cast<float>(b)); }
constexpr half operator-(half a) { return half::from_bits(static_cast<std::uint16_t>(a.bits() ^ 0x8000U)); }
// Compares as numbers: -0 equals +0, a NaN equals nothing.
constexpr bool operator==(half a, half b) { return static_cast<float>(a) == static_cast<float>(b); }
constexpr auto operator<=>(half a, half b) { return static_cast<float>(a) <=> static_cast<float>(b); }

}  // namespace npushmem::npu
