// SPDX-License-Identifier: BSD-3-Clause
// Vectors of floats, loaded from and stored to the element types with the conversions of element.hpp. The widths are of
// any CPU (4 and 1), AVX2 (8) and AVX-512 (16); a function that uses the last two has that target.
//
// Vectors are passed by reference: by value, their place would depend on the target.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <span>
#include <type_traits>

#include "core/moe/common/element.hpp"

namespace npushmem::moe {

struct Lanes4 {
    static constexpr std::size_t lanes = 4;
    using Float = float __attribute__((vector_size(16)));
    using Bits = std::uint32_t __attribute__((vector_size(16)));
    using Words = std::uint16_t __attribute__((vector_size(16)));
    using Short = std::uint16_t __attribute__((vector_size(8)));
    using Byte = std::uint8_t __attribute__((vector_size(4)));
};

struct Lanes8 {
    static constexpr std::size_t lanes = 8;
    using Float = float __attribute__((vector_size(32)));
    using Bits = std::uint32_t __attribute__((vector_size(32)));
    using Words = std::uint16_t __attribute__((vector_size(32)));
    using Short = std::uint16_t __attribute__((vector_size(16)));
    using Byte = std::uint8_t __attribute__((vector_size(8)));
};

struct Lanes16 {
    static constexpr std::size_t lanes = 16;
    using Float = float __attribute__((vector_size(64)));
    using Bits = std::uint32_t __attribute__((vector_size(64)));
    using Words = std::uint16_t __attribute__((vector_size(64)));
    using Short = std::uint16_t __attribute__((vector_size(32)));
    using Byte = std::uint8_t __attribute__((vector_size(16)));
};

// Of variants by width, the widest first (AVX-512, AVX2, any CPU): those that this CPU can run.
template <class Variant, std::size_t n>
std::span<const Variant> runnable(const std::array<Variant, n>& variants) {
#if defined(__x86_64__)
    static_assert(n == 3);
    if (__builtin_cpu_supports("avx2") == 0) return std::span(variants).last(1);
    const bool avx512 = __builtin_cpu_supports("avx512f") != 0 && __builtin_cpu_supports("avx512bw") != 0 &&
                        __builtin_cpu_supports("avx512dq") != 0 && __builtin_cpu_supports("avx512vl") != 0;
    if (!avx512) return std::span(variants).last(2);
#endif
    return variants;
}

template <class Lanes>
struct FloatVectors {
    using Float = typename Lanes::Float;
    using Bits = typename Lanes::Bits;
    using Words = typename Lanes::Words;
    using Short = typename Lanes::Short;
    using Byte = typename Lanes::Byte;
    static constexpr std::size_t lanes = Lanes::lanes;

    template <class Value>
    [[gnu::always_inline]] static void get(Value& value, const void* from) {
        std::memcpy(&value, from, sizeof value);
    }
    [[gnu::always_inline]] static void load(Float& value, const float* from) { get(value, from); }
    [[gnu::always_inline]] static void load(Float& value, const Bfloat16* from) {
        Short narrow;
        get(narrow, from);
        Bits wide;
        convert(wide, narrow);
        value = reinterpret_cast<Float>(wide << 16);
    }
    [[gnu::always_inline]] static void load(Float& value, const Half* from) {
        Short narrow;
        get(narrow, from);
        Bits wide;
        convert(wide, narrow);
        const Bits magnitude = (wide & 0x7FFFU) << 13;
        const Bits finite = reinterpret_cast<Bits>(reinterpret_cast<Float>(magnitude) * 0x1p112F);
        const Bits unsigned_bits = magnitude >= 0x0F800000U ? magnitude | 0x7F800000U : finite;
        value = reinterpret_cast<Float>((wide & 0x8000U) << 16 | unsigned_bits);
    }
    [[gnu::always_inline]] static void load(Bits& value, const std::uint8_t* from) {
        Byte narrow;
        get(narrow, from);
        convert(value, narrow);
    }

    [[gnu::always_inline]] static void put_short(void* to, const Bits& bits) {
        Short short_bits;
        convert(short_bits, bits);
        std::memcpy(to, &short_bits, sizeof short_bits);
    }
    [[gnu::always_inline]] static void store(float* to, const Float& value) { std::memcpy(to, &value, sizeof value); }
    [[gnu::always_inline]] static void store(Bfloat16* to, const Float& value) {
        Bits high;
        round(high, value);
        put_short(to, high >> 16);
    }
    [[gnu::always_inline]] static void store(Half* to, const Float& value) {
        const Bits bits = reinterpret_cast<Bits>(value);
        const Bits magnitude = bits & 0x7FFFFFFFU;
        const Bits clamped = magnitude < 0x38800000U ? magnitude : magnitude - magnitude + 0x38800000U;
        const Bits tiny = reinterpret_cast<Bits>(reinterpret_cast<Float>(clamped) + 0.5F) - 0x3F000000U;
        const Bits normal = ((magnitude + 0xFFFU + ((magnitude >> 13) & 1U)) >> 13) - (112U << 10);
        const Bits infinite = magnitude - magnitude + 0x7C00U;
        const Bits huge = magnitude > 0x7F800000U ? (magnitude >> 13 & 0x3FFU) | 0x7E00U : infinite;
        const Bits finite = magnitude < 0x38800000U ? tiny : normal;
        put_short(to, (bits >> 16 & 0x8000U) | (magnitude >= 0x477FF000U ? huge : finite));
    }
    [[gnu::always_inline]] static void store(std::uint8_t* to, const Bits& bits) {
        Byte bytes;
        convert(bytes, bits);
        std::memcpy(to, &bytes, sizeof bytes);
    }

    // Converts each element: to more bits, with zeros, or to its low bits. GCC 12 emits several instructions for each
    // conversion with 16 lanes; AVX-512 has one for each. With fewer lanes it has vector instructions only for two
    // steps between bytes and 32 bits. clang chooses them itself.
    template <class To, class From>
    [[gnu::always_inline]] static void convert(To& to, const From& from) {
#if defined(__x86_64__) && !defined(__clang__)
        if constexpr (lanes == 16) {
            if constexpr (std::is_same_v<From, Short>) asm("vpmovzxwd %1, %0" : "=v"(to) : "vm"(from));
            if constexpr (std::is_same_v<From, Byte>) asm("vpmovzxbd %1, %0" : "=v"(to) : "vm"(from));
            if constexpr (std::is_same_v<To, Short>) asm("vpmovdw %1, %0" : "=v"(to) : "v"(from));
            if constexpr (std::is_same_v<To, Byte>) asm("vpmovdb %1, %0" : "=v"(to) : "v"(from));
            return;
        }
#endif
        if constexpr (std::is_same_v<From, Byte> || std::is_same_v<To, Byte>)
            to = __builtin_convertvector(__builtin_convertvector(from, Short), To);
        else
            to = __builtin_convertvector(from, To);
    }

    // The bits of the rounded bfloat16, as the high half of a word.
    [[gnu::always_inline]] static void round(Bits& high, const Float& value) {
        const Bits bits = reinterpret_cast<Bits>(value);
        const Bits rounded = bits + 0x7FFFU + (bits >> 16 & 1U);
        high = value != value ? bits | 0x400000U : rounded;
    }
};

// One element, with the same names.
struct OneFloat {
    using Float = float;
    using Bits = std::uint32_t;
    static constexpr std::size_t lanes = 1;

    template <class Element>
    [[gnu::always_inline]] static void load(float& value, const Element* from) {
        value = to_float(*from);
    }
    [[gnu::always_inline]] static void load(std::uint32_t& value, const std::uint8_t* from) { value = *from; }
    template <class Element>
    [[gnu::always_inline]] static void store(Element* to, const float& value) {
        *to = from_float<Element>(value);
    }
    [[gnu::always_inline]] static void store(std::uint8_t* to, const std::uint32_t& bits) {
        *to = static_cast<std::uint8_t>(bits);
    }
};

}  // namespace npushmem::moe
