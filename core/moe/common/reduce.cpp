// SPDX-License-Identifier: BSD-3-Clause
#include "core/moe/common/reduce.hpp"

#include <algorithm>
#include <array>
#include <cstdint>
#include <cstring>
#include <type_traits>

#include "core/moe/common/float_vectors.hpp"

namespace npushmem::moe {
namespace {

// Number of columns summed at a time.
constexpr std::size_t block = 64;

template <class Input>
[[gnu::always_inline]] inline void add_row(float* sums, const Input* row, float weight, std::size_t columns) {
    for (std::size_t c = 0; c < columns; ++c) {
        const float product = weight * to_float(row[c]);
        sums[c] += product;
    }
}

template <class Input, class Output>
[[gnu::always_inline]] inline void reduce_block(Output* out, const void* const* rows, const float* weights,
                                                std::size_t count, std::size_t first, std::size_t columns) {
    std::array<float, block> sums;
    for (std::size_t c = 0; c < columns; ++c) sums[c] = 0.0F;
    for (std::size_t i = 0; i < count; ++i) {
        add_row(sums.data(), static_cast<const Input*>(rows[i]) + first, weights[i], columns);
    }
    for (std::size_t c = 0; c < columns; ++c) out[first + c] = from_float<Output>(sums[c]);
}

// Whole blocks with their length known to the compiler, so that it vectorises them without checks, then the rest.
template <class Input, class Output>
[[gnu::always_inline]] inline void reduce_columns(void* out, const void* const* rows, const float* weights,
                                                  std::size_t count, std::size_t columns) {
    auto* target = static_cast<Output*>(out);
    std::size_t first = 0;
    for (; first + block <= columns; first += block) {
        reduce_block<Input>(target, rows, weights, count, first, block);
    }
    if (first < columns) reduce_block<Input>(target, rows, weights, count, first, columns - first);
}

struct Portable {
    template <class Input, class Output>
    static void run(void* out, const void* const* rows, const float* weights, std::size_t count, const SumShape& shape,
                    std::span<const void* const>) {
        reduce_columns<Input, Output>(out, rows, weights, count, shape.columns);
    }
};

#if defined(__x86_64__)
template <class Lanes>
struct Vector : FloatVectors<Lanes> {
    using Base = FloatVectors<Lanes>;
    using Base::get;
    using Base::lanes;
    using Base::load;
    using Base::round;
    using Base::store;
    using typename Base::Bits;
    using typename Base::Float;

    // Two vectors of a row. Two bfloat16 are one 32-bit word, so where rows and output have that type, the first vector
    // takes the words' low halves and the second their high ones.
    template <class Input, class Output>
    static constexpr bool in_words = std::is_same_v<Input, Bfloat16>&& std::is_same_v<Output, Bfloat16>;

    template <class Output, class Input>
    [[gnu::always_inline]] static void load_two(Float* two, const Input* from) {
        if constexpr (in_words<Input, Output>) {
            Bits words;
            get(words, from);
            two[0] = reinterpret_cast<Float>(words << 16);
            two[1] = reinterpret_cast<Float>(words & 0xFFFF0000U);
        } else {
            load(two[0], from);
            load(two[1], from + lanes);
        }
    }

    // `streaming`: past the caches; `to` is aligned to the value.
    template <bool streaming, class Value>
    [[gnu::always_inline]] static void put(void* to, const Value& value) {
        if constexpr (streaming) {
            using AtAnyType [[gnu::may_alias]] = Value;
#if defined(__clang__)
            __builtin_nontemporal_store(value, static_cast<AtAnyType*>(to));
#else
            asm("vmovntdq %1, %0" : "=m"(*static_cast<AtAnyType*>(to)) : "v"(value));
#endif
        } else {
            std::memcpy(to, &value, sizeof value);
        }
    }

    template <bool streaming, class Input, class Output>
    [[gnu::always_inline]] static void store_two(Output* to, const Float* two) {
        if constexpr (in_words<Input, Output>) {
            Bits low;
            Bits high;
            round(low, two[0]);
            round(high, two[1]);
            put<streaming>(to, low >> 16 | (high & 0xFFFF0000U));
        } else {
            for (std::size_t i = 0; i < 2; ++i) {
                std::conditional_t<sizeof(Output) == sizeof(float), Bits, typename Base::Short> stored;
                store(reinterpret_cast<Output*>(&stored), two[i]);
                put<streaming>(to + i * lanes, stored);
            }
        }
    }

    // Sums one block, which stays in registers, and loads the same block of the next rows into the second-level cache.
    // Measured on rows in memory: without that, a sum takes about the time of its loads plus that of its arithmetic.
    template <std::size_t vectors, bool streaming, class Input, class Output>
    [[gnu::always_inline]] static void reduce_vectors(Output* target, const void* const* rows, const float* weights,
                                                      std::size_t count, std::size_t first,
                                                      const std::span<const void* const>& next) {
        for (const void* row : next) {
            const Input* ahead = static_cast<const Input*>(row) + first;
#pragma GCC unroll 8
            for (std::size_t c = 0; c < vectors * lanes; c += 64 / sizeof(Input)) __builtin_prefetch(ahead + c, 0, 2);
        }
        Float sums[vectors] = {};
        for (std::size_t i = 0; i < count; ++i) {
            const Input* row = static_cast<const Input*>(rows[i]) + first;
#pragma GCC unroll 16
            for (std::size_t v = 0; v < vectors; v += 2) {
                Float two[2];
                load_two<Output>(two, row + v * lanes);
                two[0] *= weights[i];
                two[1] *= weights[i];
                sums[v] += two[0];
                sums[v + 1] += two[1];
            }
        }
#pragma GCC unroll 16
        for (std::size_t v = 0; v < vectors; v += 2) store_two<streaming, Input>(target + first + v * lanes, sums + v);
    }

    // Eight vectors of a row at a time. Measured with AVX-512 on rows of 14 KB in memory: a fifth faster than four, for
    // one to eight rows; sixteen take twice the time.
    template <bool streaming, class Input, class Output>
    [[gnu::always_inline]] static void reduce(Output* target, const void* const* rows, const float* weights,
                                              std::size_t count, std::size_t columns,
                                              const std::span<const void* const>& next) {
        constexpr std::size_t vectors = 8;
        std::size_t first = 0;
        for (; first + vectors * lanes <= columns; first += vectors * lanes)
            reduce_vectors<vectors, streaming, Input>(target, rows, weights, count, first, next);
        for (; first + 2 * lanes <= columns; first += 2 * lanes)
            reduce_vectors<2, streaming, Input>(target, rows, weights, count, first, next);
        if (first < columns) reduce_block<Input>(target, rows, weights, count, first, columns - first);
    }

    template <class Input, class Output>
    [[gnu::always_inline]] static void reduce(void* out, const void* const* rows, const float* weights,
                                              std::size_t count, const SumShape& shape,
                                              const std::span<const void* const>& next) {
        auto* const target = static_cast<Output*>(out);
        const bool fits = reinterpret_cast<std::uintptr_t>(out) % sizeof(Bits) == 0;
        if (shape.streaming && fits) return reduce<true, Input>(target, rows, weights, count, shape.columns, next);
        reduce<false, Input>(target, rows, weights, count, shape.columns, next);
    }
};

struct Avx2 {
    template <class Input, class Output>
    [[gnu::target("avx2")]] static void run(void* out, const void* const* rows, const float* weights, std::size_t count,
                                            const SumShape& shape, std::span<const void* const> next) {
        Vector<Lanes8>::reduce<Input, Output>(out, rows, weights, count, shape, next);
    }
};

struct Avx512 {
    template <class Input, class Output>
    [[gnu::target("avx512f,avx512bw,avx512dq,avx512vl")]] static void run(void* out, const void* const* rows,
                                                                          const float* weights, std::size_t count,
                                                                          const SumShape& shape,
                                                                          std::span<const void* const> next) {
        Vector<Lanes16>::reduce<Input, Output>(out, rows, weights, count, shape, next);
    }
};
#endif

template <class Cpu, class Input>
ReduceFunction to_output(ElementType output) {
    switch (output) {
        case ElementType::bfloat16: return &Cpu::template run<Input, Bfloat16>;
        case ElementType::half: return &Cpu::template run<Input, Half>;
        case ElementType::float32: break;
    }
    return &Cpu::template run<Input, float>;
}

template <class Cpu>
ReduceFunction pick(ElementType input, ElementType output) {
    switch (input) {
        case ElementType::bfloat16: return to_output<Cpu, Bfloat16>(output);
        case ElementType::half: return to_output<Cpu, Half>(output);
        case ElementType::float32: break;
    }
    return to_output<Cpu, float>(output);
}

#if defined(__x86_64__)
constexpr std::array<ReduceVariant, 3> variants{
    {{"avx512", &pick<Avx512>}, {"avx2", &pick<Avx2>}, {"portable", &pick<Portable>}}};
#else
constexpr std::array<ReduceVariant, 1> variants{{{"portable", &pick<Portable>}}};
#endif

}  // namespace

std::span<const ReduceVariant> reduce_variants() { return runnable(variants); }

}  // namespace npushmem::moe
