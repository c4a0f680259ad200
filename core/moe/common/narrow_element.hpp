// SPDX-License-Identifier: BSD-3-Clause
// The 8-bit element types of quantized rows: conversions of one element or of a vector of them, to and from the low
// byte of a word. As in element.hpp they are selects without branches. Compile them without contraction of products and
// sums.
#pragma once

#include <bit>
#include <cstdint>

namespace npushmem::moe {

constexpr std::uint32_t magnitude_bits = 0x7FFFFFFFU;
constexpr std::uint32_t infinity_bits = 0x7F800000U;

// A float of 8 bits, with the patterns of its largest number and of infinity and NaN.
template <std::uint32_t bias, std::uint32_t fraction_bits, std::uint32_t highest, std::uint32_t infinity,
          std::uint32_t nan>
struct Float8 {
    static constexpr bool holds_nan = true;
    static constexpr std::uint32_t shift = 23 - fraction_bits;
    static constexpr std::uint32_t smallest_normal = (128 - bias) << 23;
    // Below the smallest normal number the step is 2^(1 - bias - fraction_bits), that of a float next to this one:
    // adding it rounds.
    static constexpr std::uint32_t rounding = (151 - bias - fraction_bits) << 23;
    static constexpr std::uint32_t below_half = (1U << (shift - 1)) - 1;
    // Makes the low byte of a step plus its shifted exponent 0 for the smallest normal number. It is even, so that ties
    // are rounded as without it.
    static constexpr std::uint32_t first_step = -((smallest_normal + (shift << 23)) >> shift) & 0xFFU;
    static_assert(first_step % 2 == 0);

    // `finite`: the value is finite and at most the largest number, but for its rounding. `step`: a float whose last
    // bit is the value's step, so that adding it rounds the value to a number of steps. Each power of two between
    // normal numbers has as many steps as the smallest normal number.
    template <bool finite, class Bits, class Float>
    [[gnu::always_inline]] static void narrow(Bits& byte, const Float& value) {
        const Bits zero = {};
        const Bits bits = __builtin_bit_cast(Bits, value);
        const Bits magnitude = bits & magnitude_bits;
        const Bits sign = bits >> 24;
        if constexpr (finite) {
            const Bits exponent = bits & infinity_bits;
            const Bits power = exponent > smallest_normal ? exponent : zero + smallest_normal;
            const Bits step = power + (shift << 23 | first_step);
            const Float sum = __builtin_bit_cast(Float, magnitude) + __builtin_bit_cast(Float, step);
            const Bits steps = __builtin_bit_cast(Bits, sum);
            byte = (sign & 0x80U) | ((steps + (steps >> shift)) & 0x7FU);
        } else {
            const Bits clamped = magnitude < smallest_normal ? magnitude : zero + smallest_normal;
            const Float sum = __builtin_bit_cast(Float, clamped) + std::bit_cast<float>(rounding);
            const Bits tiny = __builtin_bit_cast(Bits, sum) - rounding;
            const Bits rounded = (magnitude + below_half + ((magnitude >> shift) & 1U)) >> shift;
            const Bits normal = rounded - ((127 - bias) << fraction_bits);
            const Bits number = magnitude < smallest_normal ? tiny : normal;
            const Bits in_range = number < highest ? number : zero + highest;
            const Bits special = magnitude > infinity_bits ? zero + nan : zero + infinity;
            byte = (sign & 0x80U) | (magnitude >= infinity_bits ? special : in_range);
        }
    }
    // The bits at the place of a float's are too small by a power of two, denormals included.
    template <class Bits, class Float>
    [[gnu::always_inline]] static void widen(Float& value, const Bits& byte) {
        const Bits magnitude = (byte & 0x7FU) << shift;
        const Float scaled = __builtin_bit_cast(Float, magnitude) * std::bit_cast<float>((254 - bias) << 23);
        const Bits finite = __builtin_bit_cast(Bits, scaled);
        const Bits special = magnitude | infinity_bits;
        const Bits unsigned_bits = magnitude >= infinity << shift ? special : finite;
        const Bits bits = (byte & 0x80U) << 24 | unsigned_bits;
        value = __builtin_bit_cast(Float, bits);
    }
};

// E4M3 has no infinity: one becomes a NaN.
struct E4m3 : Float8<7, 3, 0x7E, 0x7F, 0x7F> {
    static constexpr float largest = 448.0F;
};
struct E5m2 : Float8<15, 2, 0x7B, 0x7C, 0x7E> {
    static constexpr float largest = 57344.0F;
};

struct Int8 {
    static constexpr float largest = 127.0F;
    static constexpr bool holds_nan = false;

    // The step of a float next to 1.5 * 2^23 is 1, so adding that rounds. A NaN becomes 0.
    template <bool finite, class Bits, class Float>
    [[gnu::always_inline]] static void narrow(Bits& byte, const Float& value) {
        Float in_range = value;
        if constexpr (!finite) {
            const Float most = Float{} + largest;
            const Float number = value == value ? value : Float{};
            const Float above = number < -most ? -most : number;
            in_range = above > most ? most : above;
        }
        const Float sum = in_range + 0x1.8p23F;
        byte = (__builtin_bit_cast(Bits, sum) - 0x4B400000U) & 0xFFU;
    }
    // The same the other way: the byte with its sign changed is 0 to 255, from -128 on.
    template <class Bits, class Float>
    [[gnu::always_inline]] static void widen(Float& value, const Bits& byte) {
        const Bits shifted = (byte ^ 0x80U) + (0x4B400000U - 0x80U);
        value = __builtin_bit_cast(Float, shifted) - 0x1.8p23F;
    }
};

}  // namespace npushmem::moe
