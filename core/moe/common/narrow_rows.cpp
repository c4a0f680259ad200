// SPDX-License-Identifier: BSD-3-Clause
#include "core/moe/common/narrow_rows.hpp"

#include <algorithm>
#include <array>
#include <bit>
#include <cstring>
#include <limits>

#include "core/moe/common/float_vectors.hpp"

namespace npushmem::moe {
namespace {

constexpr std::uint32_t magnitude_bits = 0x7FFFFFFFU;
constexpr std::uint32_t infinity_bits = 0x7F800000U;

// The types: conversions of one element or of a vector of them, to and from the low byte of a word. As in element.hpp
// they are selects without branches.

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

    template <class Bits, class Float>
    [[gnu::always_inline]] static void narrow(Bits& byte, const Float& value) {
        const Bits zero = {};
        const Bits bits = __builtin_bit_cast(Bits, value);
        const Bits magnitude = bits & magnitude_bits;
        const Bits clamped = magnitude < smallest_normal ? magnitude : zero + smallest_normal;
        const Float sum = __builtin_bit_cast(Float, clamped) + std::bit_cast<float>(rounding);
        const Bits tiny = __builtin_bit_cast(Bits, sum) - rounding;
        const Bits rounded = (magnitude + below_half + ((magnitude >> shift) & 1U)) >> shift;
        const Bits normal = rounded - ((127 - bias) << fraction_bits);
        const Bits number = magnitude < smallest_normal ? tiny : normal;
        const Bits finite = number < highest ? number : zero + highest;
        const Bits special = magnitude > infinity_bits ? zero + nan : zero + infinity;
        byte = (bits >> 24 & 0x80U) | (magnitude >= infinity_bits ? special : finite);
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
    template <class Bits, class Float>
    [[gnu::always_inline]] static void narrow(Bits& byte, const Float& value) {
        const Float most = Float{} + largest;
        const Float number = value == value ? value : Float{};
        const Float above = number < -most ? -most : number;
        const Float in_range = above > most ? most : above;
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

// Loops over `count` elements, a multiple of Vector::lanes.

template <class Vector>
struct Magnitudes {
    typename Vector::Bits largest{};  // bits of the largest finite magnitude in each lane
    typename Vector::Bits highest{};  // of the largest of all, infinities and NaNs too
};

template <class Vector, class Wide>
[[gnu::always_inline]] inline void measure(Magnitudes<Vector>& found, const Wide* wide, std::size_t count) {
    using Bits = typename Vector::Bits;
    for (std::size_t i = 0; i < count; i += Vector::lanes) {
        typename Vector::Float value;
        Vector::load(value, wide + i);
        const Bits magnitude = __builtin_bit_cast(Bits, value) & magnitude_bits;
        const Bits finite = magnitude < infinity_bits ? magnitude : Bits{};
        found.largest = finite > found.largest ? finite : found.largest;
        found.highest = magnitude > found.highest ? magnitude : found.highest;
    }
}

template <class Vector, class Narrow, class Wide>
[[gnu::always_inline]] inline void narrow_elements(const Wide* wide, float inverse, std::uint8_t* narrow,
                                                   std::size_t count) {
    for (std::size_t i = 0; i < count; i += Vector::lanes) {
        typename Vector::Float value;
        Vector::load(value, wide + i);
        value *= inverse;
        typename Vector::Bits byte;
        Narrow::narrow(byte, value);
        Vector::store(narrow + i, byte);
    }
}

template <class Vector, class Narrow, class Wide>
[[gnu::always_inline]] inline void widen_elements(const std::uint8_t* narrow, float scale, Wide* wide,
                                                  std::size_t count) {
    for (std::size_t i = 0; i < count; i += Vector::lanes) {
        typename Vector::Bits byte;
        Vector::load(byte, narrow + i);
        typename Vector::Float value;
        Narrow::widen(value, byte);
        value *= scale;
        Vector::store(wide + i, value);
    }
}

// The largest scale whose product with `largest` is finite.
constexpr float largest_scale(float largest) {
    constexpr float most = std::numeric_limits<float>::max();
    const float scale = most / largest;  // rounded, perhaps up
    const bool finite = static_cast<double>(scale) * static_cast<double>(largest) <= static_cast<double>(most);
    return finite ? scale : std::bit_cast<float>(std::bit_cast<std::uint32_t>(scale) - 1);
}

// The scale of a block of `count` elements, whole vectors of which are measured as such.
template <class Vector, class Narrow, class Wide>
[[gnu::always_inline]] inline float scale_of(const Wide* wide, std::size_t whole, std::size_t count) {
    Magnitudes<Vector> lanes;
    measure<Vector>(lanes, wide, whole);
    Magnitudes<OneFloat> rest;
    measure<OneFloat>(rest, wide + whole, count - whole);
    std::array<std::uint32_t, Vector::lanes> largest;
    std::array<std::uint32_t, Vector::lanes> highest;
    std::memcpy(largest.data(), &lanes.largest, sizeof largest);
    std::memcpy(highest.data(), &lanes.highest, sizeof highest);
    for (std::size_t i = 0; i < Vector::lanes; ++i) {
        rest.largest = largest[i] > rest.largest ? largest[i] : rest.largest;
        rest.highest = highest[i] > rest.highest ? highest[i] : rest.highest;
    }
    if (!Narrow::holds_nan && rest.highest >= infinity_bits) return std::numeric_limits<float>::quiet_NaN();
    if (rest.largest == 0) return 1.0F;
    const float scale = std::bit_cast<float>(rest.largest) / Narrow::largest;
    return std::clamp(scale, std::numeric_limits<float>::min(), largest_scale(Narrow::largest));
}

template <class Vector, class Narrow, class Wide>
[[gnu::always_inline]] inline void quantize_row(const NarrowLayout& layout, const void* from, std::byte* to) {
    const auto* wide = static_cast<const Wide*>(from);
    auto* narrow = reinterpret_cast<std::uint8_t*>(to);
    auto* scales = reinterpret_cast<float*>(to + layout.scales().value());
    std::memset(narrow + layout.hidden(), 0, layout.scales().value() - layout.hidden());
    for (std::size_t b = 0, at = 0; b < layout.blocks(); ++b, at += layout.block()) {
        const std::size_t count = std::min(layout.block(), layout.hidden() - at);
        const std::size_t whole = count - count % Vector::lanes;
        scales[b] = scale_of<Vector, Narrow>(wide + at, whole, count);
        const float inverse = 1.0F / scales[b];
        narrow_elements<Vector, Narrow>(wide + at, inverse, narrow + at, whole);
        narrow_elements<OneFloat, Narrow>(wide + at + whole, inverse, narrow + at + whole, count - whole);
    }
    const std::size_t end = layout.scales().value() + sizeof(float) * layout.blocks();
    std::memset(to + end, 0, layout.row().value() - end);
}

template <class Vector, class Narrow, class Wide>
[[gnu::always_inline]] inline void dequantize_row(const NarrowLayout& layout, const std::byte* from, void* to) {
    const auto* narrow = reinterpret_cast<const std::uint8_t*>(from);
    const auto* scales = reinterpret_cast<const float*>(from + layout.scales().value());
    auto* wide = static_cast<Wide*>(to);
    for (std::size_t b = 0, at = 0; b < layout.blocks(); ++b, at += layout.block()) {
        const std::size_t count = std::min(layout.block(), layout.hidden() - at);
        const std::size_t whole = count - count % Vector::lanes;
        widen_elements<Vector, Narrow>(narrow + at, scales[b], wide + at, whole);
        widen_elements<OneFloat, Narrow>(narrow + at + whole, scales[b], wide + at + whole, count - whole);
    }
}

// The CPUs.

struct AnyCpu {
    template <class Narrow, class Wide>
    static void quantize(const NarrowLayout& layout, const void* wide, std::byte* narrow) {
        quantize_row<FloatVectors<Lanes4>, Narrow, Wide>(layout, wide, narrow);
    }
    template <class Narrow, class Wide>
    static void dequantize(const NarrowLayout& layout, const std::byte* narrow, void* wide) {
        dequantize_row<FloatVectors<Lanes4>, Narrow, Wide>(layout, narrow, wide);
    }
};

#if defined(__x86_64__)
struct CpuWithAvx2 {
    template <class Narrow, class Wide>
    [[gnu::target("avx2")]] static void quantize(const NarrowLayout& layout, const void* wide, std::byte* narrow) {
        quantize_row<FloatVectors<Lanes8>, Narrow, Wide>(layout, wide, narrow);
    }
    template <class Narrow, class Wide>
    [[gnu::target("avx2")]] static void dequantize(const NarrowLayout& layout, const std::byte* narrow, void* wide) {
        dequantize_row<FloatVectors<Lanes8>, Narrow, Wide>(layout, narrow, wide);
    }
};

struct CpuWithAvx512 {
    template <class Narrow, class Wide>
    [[gnu::target("avx512f,avx512bw,avx512dq,avx512vl")]] static void quantize(const NarrowLayout& layout,
                                                                               const void* wide, std::byte* narrow) {
        quantize_row<FloatVectors<Lanes16>, Narrow, Wide>(layout, wide, narrow);
    }
    template <class Narrow, class Wide>
    [[gnu::target("avx512f,avx512bw,avx512dq,avx512vl")]] static void dequantize(const NarrowLayout& layout,
                                                                                 const std::byte* narrow, void* wide) {
        dequantize_row<FloatVectors<Lanes16>, Narrow, Wide>(layout, narrow, wide);
    }
};
#endif

template <class Cpu, class Narrow>
NarrowConversion from_type(ElementType wide) {
    switch (wide) {
        case ElementType::bfloat16:
            return {&Cpu::template quantize<Narrow, Bfloat16>, &Cpu::template dequantize<Narrow, Bfloat16>};
        case ElementType::half: return {&Cpu::template quantize<Narrow, Half>, &Cpu::template dequantize<Narrow, Half>};
        case ElementType::float32: break;
    }
    return {&Cpu::template quantize<Narrow, float>, &Cpu::template dequantize<Narrow, float>};
}

template <class Cpu>
NarrowConversion to_type(NarrowType type, ElementType wide) {
    switch (type) {
        case NarrowType::e5m2: return from_type<Cpu, E5m2>(wide);
        case NarrowType::int8: return from_type<Cpu, Int8>(wide);
        case NarrowType::e4m3:
        case NarrowType::none: break;
    }
    return from_type<Cpu, E4m3>(wide);
}

#if defined(__x86_64__)
constexpr std::array<NarrowVariant, 3> conversions{
    {{"avx512", &to_type<CpuWithAvx512>}, {"avx2", &to_type<CpuWithAvx2>}, {"portable", &to_type<AnyCpu>}}};
#else
constexpr std::array<NarrowVariant, 1> conversions{{{"portable", &to_type<AnyCpu>}}};
#endif

}  // namespace

std::span<const NarrowVariant> narrow_variants() {
#if defined(__x86_64__)
    if (__builtin_cpu_supports("avx2") == 0) return std::span(conversions).last(1);
    const bool avx512 = __builtin_cpu_supports("avx512f") != 0 && __builtin_cpu_supports("avx512bw") != 0 &&
                        __builtin_cpu_supports("avx512dq") != 0 && __builtin_cpu_supports("avx512vl") != 0;
    if (!avx512) return std::span(conversions).last(2);
#endif
    return conversions;
}

}  // namespace npushmem::moe
