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

struct E4m3 {
    static constexpr float largest = 448.0F;
    static constexpr bool holds_nan = true;

    // Below 2^-6 the step is 2^-9, that of a float next to 2^14, so adding 2^14 rounds.
    template <class Bits, class Float>
    [[gnu::always_inline]] static void narrow(Bits& byte, const Float& value) {
        const Bits bits = __builtin_bit_cast(Bits, value);
        const Bits magnitude = bits & magnitude_bits;
        const Bits smallest_normal = Bits{} + 0x3C800000U;
        const Bits clamped = magnitude < smallest_normal ? magnitude : smallest_normal;
        const Float sum = __builtin_bit_cast(Float, clamped) + 0x1p14F;
        const Bits tiny = __builtin_bit_cast(Bits, sum) - 0x46800000U;
        const Bits normal = ((magnitude + 0x7FFFFU + ((magnitude >> 20) & 1U)) >> 20) - (120U << 3);
        const Bits rounded = magnitude < smallest_normal ? tiny : normal;
        const Bits most = Bits{} + 0x7EU;
        const Bits finite = rounded < most ? rounded : most;
        const Bits nan = Bits{} + 0x7FU;
        byte = (bits >> 24 & 0x80U) | (magnitude >= infinity_bits ? nan : finite);
    }
    template <class Bits, class Float>
    [[gnu::always_inline]] static void widen(Float& value, const Bits& byte) {
        const Bits magnitude = (byte & 0x7FU) << 20;
        const Float scaled = __builtin_bit_cast(Float, magnitude) * 0x1p120F;
        const Bits nan = Bits{} + 0x7FC00000U;
        const Bits finite = __builtin_bit_cast(Bits, scaled);
        const Bits unsigned_bits = magnitude == 0x07F00000U ? nan : finite;
        const Bits bits = (byte & 0x80U) << 24 | unsigned_bits;
        value = __builtin_bit_cast(Float, bits);
    }
};

struct E5m2 {
    static constexpr float largest = 57344.0F;
    static constexpr bool holds_nan = true;

    // Below 2^-14 the step is 2^-16, that of a float next to 2^7.
    template <class Bits, class Float>
    [[gnu::always_inline]] static void narrow(Bits& byte, const Float& value) {
        const Bits bits = __builtin_bit_cast(Bits, value);
        const Bits magnitude = bits & magnitude_bits;
        const Bits smallest_normal = Bits{} + 0x38800000U;
        const Bits clamped = magnitude < smallest_normal ? magnitude : smallest_normal;
        const Float sum = __builtin_bit_cast(Float, clamped) + 0x1p7F;
        const Bits tiny = __builtin_bit_cast(Bits, sum) - 0x43000000U;
        const Bits normal = ((magnitude + 0xFFFFFU + ((magnitude >> 21) & 1U)) >> 21) - (112U << 2);
        const Bits rounded = magnitude < smallest_normal ? tiny : normal;
        const Bits most = Bits{} + 0x7BU;
        const Bits finite = rounded < most ? rounded : most;
        const Bits infinity = Bits{} + 0x7CU;
        const Bits special = magnitude > infinity_bits ? infinity + 2U : infinity;
        byte = (bits >> 24 & 0x80U) | (magnitude >= infinity_bits ? special : finite);
    }
    // The bits are the upper half of a half.
    template <class Bits, class Float>
    [[gnu::always_inline]] static void widen(Float& value, const Bits& byte) {
        const Bits magnitude = (byte & 0x7FU) << 21;
        const Float scaled = __builtin_bit_cast(Float, magnitude) * 0x1p112F;
        const Bits finite = __builtin_bit_cast(Bits, scaled);
        const Bits special = magnitude | infinity_bits;
        const Bits unsigned_bits = magnitude >= 0x0F800000U ? special : finite;
        const Bits bits = (byte & 0x80U) << 24 | unsigned_bits;
        value = __builtin_bit_cast(Float, bits);
    }
};

struct Int8 {
    static constexpr float largest = 127.0F;
    static constexpr bool holds_nan = false;

    // The step of a float next to 1.5 * 2^23 is 1, so adding that rounds.
    template <class Bits, class Float>
    [[gnu::always_inline]] static void narrow(Bits& byte, const Float& value) {
        const Float most = Float{} + largest;
        const Float above = value < -most ? -most : value;
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
    return scale > std::numeric_limits<float>::min() ? scale : std::numeric_limits<float>::min();
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
