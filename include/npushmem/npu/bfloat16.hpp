// SPDX-License-Identifier: BSD-3-Clause
// bfloat16 as a value type: the upper half of a float, arithmetic in float with one rounding per operation.
#pragma once

#include <bit>
#include <compare>
#include <cstdint>

#include "npushmem/npu/round_to_odd.hpp"

namespace npushmem::npu {

// Every conversion to bfloat16 rounds to nearest, ties to even; overflow gives infinity, NaN stays NaN (quiet).
class bfloat16 {
public:
    constexpr bfloat16() = default;
    constexpr explicit bfloat16(float value) : bits_(encode(value)) {}

    // Rounds once from double, not through a rounded float.
    static constexpr bfloat16 from_double(double value) { return bfloat16(detail::round_to_odd(value)); }
    static constexpr bfloat16 from_bits(std::uint16_t bits) {
        bfloat16 result;
        result.bits_ = bits;
        return result;
    }

    [[nodiscard]] constexpr std::uint16_t bits() const { return bits_; }
    constexpr explicit operator float() const { return std::bit_cast<float>(static_cast<std::uint32_t>(bits_) << 16); }

private:
    // Only branches that a compiler can turn into selects: this runs in vector loops.
    static constexpr std::uint16_t encode(float value) {
        const auto word = std::bit_cast<std::uint32_t>(value);
        const std::uint32_t rounded = (word + 0x7FFFU + ((word >> 16) & 1U)) >> 16;
        const std::uint32_t quiet_nan = (word >> 16) | 0x40U;
        return static_cast<std::uint16_t>((word & 0x7FFFFFFFU) > 0x7F800000U ? quiet_nan : rounded);
    }

    std::uint16_t bits_ = 0;
};

static_assert(sizeof(bfloat16) == 2);

constexpr bfloat16 operator+(bfloat16 a, bfloat16 b) { return bfloat16(static_cast<float>(a) + static_cast<float>(b)); }
constexpr bfloat16 operator-(bfloat16 a, bfloat16 b) { return bfloat16(static_cast<float>(a) - static_cast<float>(b)); }
constexpr bfloat16 operator*(bfloat16 a, bfloat16 b) { return bfloat16(static_cast<float>(a) * static_cast<float>(b)); }
constexpr bfloat16 operator/(bfloat16 a, bfloat16 b) { return bfloat16(static_cast<float>(a) / static_cast<float>(b)); }
constexpr bfloat16 operator-(bfloat16 a) { return bfloat16::from_bits(static_cast<std::uint16_t>(a.bits() ^ 0x8000U)); }
// Compares as numbers: -0 equals +0, a NaN equals nothing.
constexpr bool operator==(bfloat16 a, bfloat16 b) { return static_cast<float>(a) == static_cast<float>(b); }
constexpr auto operator<=>(bfloat16 a, bfloat16 b) { return static_cast<float>(a) <=> static_cast<float>(b); }

}  // namespace npushmem::npu
