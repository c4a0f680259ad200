// SPDX-License-Identifier: BSD-3-Clause
#include "core/moe/common/narrow_rows.hpp"

#include <algorithm>
#include <array>
#include <bit>
#include <cstring>
#include <limits>
#include <utility>

#include "core/moe/common/float_vectors.hpp"
#include "core/moe/common/narrow_element.hpp"

namespace npushmem::moe {
namespace {

// Loops over `count` elements, a multiple of Vector::lanes.

// The bits of the largest magnitude in each lane; with `finite` of the finite ones.
template <class Vector, bool finite, class Wide>
[[gnu::always_inline]] inline void measure(typename Vector::Bits& highest, const Wide* wide, std::size_t count) {
    using Bits = typename Vector::Bits;
    highest = Bits{};
    for (std::size_t i = 0; i < count; i += Vector::lanes) {
        typename Vector::Float value;
        Vector::load(value, wide + i);
        Bits magnitude = __builtin_bit_cast(Bits, value) & magnitude_bits;
        if constexpr (finite) magnitude = magnitude < infinity_bits ? magnitude : Bits{};
        highest = magnitude > highest ? magnitude : highest;
    }
}

template <class Vector, class Narrow, bool finite, class Wide>
[[gnu::always_inline]] inline void narrow_elements(const Wide* wide, float inverse, std::uint8_t* narrow,
                                                   std::size_t count) {
#pragma GCC unroll 4
    for (std::size_t i = 0; i < count; i += Vector::lanes) {
        typename Vector::Float value;
        Vector::load(value, wide + i);
        value *= inverse;
        typename Vector::Bits byte;
        Narrow::template narrow<finite>(byte, value);
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

// The largest lane, by halves.
template <std::size_t half, class Bits, std::size_t... lane>
[[gnu::always_inline]] inline std::uint32_t highest_lane(const Bits& lanes, std::index_sequence<lane...> all) {
    const Bits other = __builtin_shufflevector(lanes, lanes, static_cast<int>(lane ^ half)...);
    const Bits higher = lanes > other ? lanes : other;
    if constexpr (half == 1)
        return higher[0];
    else
        return highest_lane<half / 2>(higher, all);
}

// The same of a block of `count` elements, whole vectors of which are measured as such.
template <class Vector, bool finite, class Wide>
[[gnu::always_inline]] inline std::uint32_t highest_of(const Wide* wide, std::size_t whole, std::size_t count) {
    typename Vector::Bits vector;
    measure<Vector, finite>(vector, wide, whole);
    std::uint32_t rest;
    measure<OneFloat, finite>(rest, wide + whole, count - whole);
    return std::max(highest_lane<Vector::lanes / 2>(vector, std::make_index_sequence<Vector::lanes>{}), rest);
}

struct BlockFacts {
    float scale;
    bool finite;  // all elements are
};

// The same for elements of 16 bits, whose magnitudes are in the order of their bits.
template <class Vector, class Wide>
[[gnu::always_inline]] inline std::uint32_t highest_of_16(const Wide* wide, std::size_t count) {
    constexpr std::size_t lanes = 2 * Vector::lanes;
    using Words = typename Vector::Words;
    Words highest = {};
    std::size_t i = 0;
    for (; i + lanes <= count; i += lanes) {
        Words magnitudes;
        std::memcpy(&magnitudes, wide + i, sizeof magnitudes);
        magnitudes &= 0x7FFFU;
        highest = magnitudes > highest ? magnitudes : highest;
    }
    using Bits = typename Vector::Bits;
    const Bits pairs = __builtin_bit_cast(Bits, highest);
    const Bits low = pairs & 0xFFFFU;
    const Bits high = pairs >> 16;
    std::uint32_t most =
        highest_lane<Vector::lanes / 2>(low > high ? low : high, std::make_index_sequence<Vector::lanes>{});
    for (; i < count; ++i) most = std::max<std::uint32_t>(most, wide[i].bits & 0x7FFFU);
    return std::bit_cast<std::uint32_t>(to_float(Wide{static_cast<std::uint16_t>(most)}));
}

template <class Vector, class Narrow, class Wide>
[[gnu::always_inline]] inline BlockFacts measure_block(const Wide* wide, std::size_t whole, std::size_t count) {
    std::uint32_t highest;
    if constexpr (sizeof(Wide) == 2)
        highest = highest_of_16<Vector>(wide, count);
    else
        highest = highest_of<Vector, false>(wide, whole, count);
    const bool finite = highest < infinity_bits;
    if (!Narrow::holds_nan && !finite) return {std::numeric_limits<float>::quiet_NaN(), finite};
    if (!finite) highest = highest_of<Vector, true>(wide, whole, count);
    if (highest == 0) return {1.0F, finite};
    const float scale = std::bit_cast<float>(highest) / Narrow::largest;
    return {std::clamp(scale, std::numeric_limits<float>::min(), largest_scale(Narrow::largest)), finite};
}

template <class Vector, class Narrow, bool finite, class Wide>
[[gnu::always_inline]] inline void narrow_block(const Wide* wide, float inverse, std::uint8_t* narrow,
                                                std::size_t whole, std::size_t count) {
    narrow_elements<Vector, Narrow, finite>(wide, inverse, narrow, whole);
    narrow_elements<OneFloat, Narrow, finite>(wide + whole, inverse, narrow + whole, count - whole);
}

template <class Vector, class Narrow, class Wide>
[[gnu::always_inline]] inline void quantize_row(const NarrowLayout& layout, const void* from, std::byte* to) {
    const auto* wide = static_cast<const Wide*>(from);
    auto* narrow = reinterpret_cast<std::uint8_t*>(to);
    auto* scales = reinterpret_cast<float*>(to + layout.scales().value());
    std::memset(narrow + layout.hidden(), 0, layout.scales().value() - layout.hidden());
    // All scales of a group first: each depends on a chain of instructions, and those of several blocks overlap.
    constexpr std::size_t group = 16;
    for (std::size_t first = 0; first < layout.blocks(); first += group) {
        const std::size_t end = std::min(first + group, layout.blocks());
        std::array<BlockFacts, group> facts;
        const auto count_of = [&](std::size_t block) {
            return std::min(layout.block(), layout.hidden() - block * layout.block());
        };
        for (std::size_t b = first; b < end; ++b) {
            const std::size_t count = count_of(b);
            facts[b - first] =
                measure_block<Vector, Narrow>(wide + b * layout.block(), count - count % Vector::lanes, count);
        }
        for (std::size_t b = first; b < end; ++b) {
            const std::size_t at = b * layout.block();
            const std::size_t count = count_of(b);
            const std::size_t whole = count - count % Vector::lanes;
            const auto [scale, finite] = facts[b - first];
            scales[b] = scale;
            const float inverse = 1.0F / scale;
            if (finite)
                narrow_block<Vector, Narrow, true>(wide + at, inverse, narrow + at, whole, count);
            else
                narrow_block<Vector, Narrow, false>(wide + at, inverse, narrow + at, whole, count);
        }
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

// The sum of weighted rows, block after block: tiles, which stay in registers, then vectors, then single columns.

constexpr std::size_t tile = 64;

struct NarrowRow {
    const std::uint8_t* elements;
    const std::byte* scales;
    float weight;

    [[gnu::always_inline]] [[nodiscard]] float scale(std::size_t block) const {
        float value;
        std::memcpy(&value, scales + block * sizeof value, sizeof value);
        return value;
    }
};

[[gnu::always_inline]] inline NarrowRow narrow_row(const void* row, float weight, std::size_t columns) {
    const auto* bytes = static_cast<const std::byte*>(row);
    const Bytes scales = aligned_up(Bytes{columns}, sizeof(float));
    return {reinterpret_cast<const std::uint8_t*>(bytes), bytes + scales.value(), weight};
}

// One column.
template <class Narrow, class Output>
[[gnu::always_inline]] inline void sum_column(Output* out, const void* const* rows, const float* weights,
                                              std::size_t count, const SumShape& shape, std::size_t column) {
    float sum = 0;
    for (std::size_t i = 0; i < count; ++i) {
        const NarrowRow row = narrow_row(rows[i], weights[i], shape.columns);
        float value;
        Narrow::widen(value, std::uint32_t{row.elements[column]});
        value *= row.scale(column / shape.scale_block);
        value *= row.weight;
        sum += value;
    }
    OneFloat::store(out + column, sum);
}

// `vectors` of them, which have one scale.
template <class Vector, class Narrow, std::size_t vectors, class Output>
[[gnu::always_inline]] inline void sum_vectors(Output* out, const void* const* rows, const float* weights,
                                               std::size_t count, const SumShape& shape, std::size_t first) {
    typename Vector::Float sums[vectors] = {};
    for (std::size_t i = 0; i < count; ++i) {
        const NarrowRow row = narrow_row(rows[i], weights[i], shape.columns);
        const float scale = row.scale(first / shape.scale_block);
#pragma GCC unroll 16
        for (std::size_t v = 0; v < vectors; ++v) {
            typename Vector::Bits byte;
            Vector::load(byte, row.elements + first + v * Vector::lanes);
            typename Vector::Float value;
            Narrow::widen(value, byte);
            value *= scale;
            value *= row.weight;
            sums[v] += value;
        }
    }
#pragma GCC unroll 16
    for (std::size_t v = 0; v < vectors; ++v) Vector::store(out + first + v * Vector::lanes, sums[v]);
}

template <class Vector, class Narrow, class Output>
[[gnu::always_inline]] inline void sum_rows(void* to, const void* const* rows, const float* weights, std::size_t count,
                                            const SumShape& shape, const std::span<const void* const>& next) {
    auto* out = static_cast<Output*>(to);
    for (std::size_t begin = 0; begin < shape.columns; begin += shape.scale_block) {
        const std::size_t end = std::min(begin + shape.scale_block, shape.columns);
        std::size_t c = begin;
        for (; c + tile <= end; c += tile) {
            for (const void* row : next) __builtin_prefetch(static_cast<const std::byte*>(row) + c, 0, 2);
            sum_vectors<Vector, Narrow, tile / Vector::lanes>(out, rows, weights, count, shape, c);
        }
        for (; c + Vector::lanes <= end; c += Vector::lanes)
            sum_vectors<Vector, Narrow, 1>(out, rows, weights, count, shape, c);
        for (; c < end; ++c) sum_column<Narrow>(out, rows, weights, count, shape, c);
    }
}

// The CPUs.

struct AnyCpu {
    template <class Narrow, class Output>
    static void reduce(void* out, const void* const* rows, const float* weights, std::size_t count,
                       const SumShape& shape, std::span<const void* const> next) {
        sum_rows<FloatVectors<Lanes4>, Narrow, Output>(out, rows, weights, count, shape, next);
    }
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
    template <class Narrow, class Output>
    [[gnu::target("avx2")]] static void reduce(void* out, const void* const* rows, const float* weights,
                                               std::size_t count, const SumShape& shape,
                                               std::span<const void* const> next) {
        sum_rows<FloatVectors<Lanes8>, Narrow, Output>(out, rows, weights, count, shape, next);
    }
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
    template <class Narrow, class Output>
    [[gnu::target("avx512f,avx512bw,avx512dq,avx512vl")]] static void reduce(void* out, const void* const* rows,
                                                                             const float* weights, std::size_t count,
                                                                             const SumShape& shape,
                                                                             std::span<const void* const> next) {
        sum_rows<FloatVectors<Lanes16>, Narrow, Output>(out, rows, weights, count, shape, next);
    }
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

template <class Cpu, class Narrow, class Wide>
NarrowFunctions functions() {
    return {&Cpu::template quantize<Narrow, Wide>, &Cpu::template dequantize<Narrow, Wide>,
            &Cpu::template reduce<Narrow, Wide>};
}

template <class Cpu, class Narrow>
NarrowFunctions for_wide(ElementType wide) {
    switch (wide) {
        case ElementType::bfloat16: return functions<Cpu, Narrow, Bfloat16>();
        case ElementType::half: return functions<Cpu, Narrow, Half>();
        case ElementType::float32: break;
    }
    return functions<Cpu, Narrow, float>();
}

template <class Cpu>
NarrowFunctions for_types(NarrowType type, ElementType wide) {
    switch (type) {
        case NarrowType::e5m2: return for_wide<Cpu, E5m2>(wide);
        case NarrowType::int8: return for_wide<Cpu, Int8>(wide);
        case NarrowType::e4m3:
        case NarrowType::none: break;
    }
    return for_wide<Cpu, E4m3>(wide);
}

#if defined(__x86_64__)
constexpr std::array<NarrowVariant, 3> variants{
    {{"avx512", &for_types<CpuWithAvx512>}, {"avx2", &for_types<CpuWithAvx2>}, {"portable", &for_types<AnyCpu>}}};
#else
constexpr std::array<NarrowVariant, 1> variants{{{"portable", &for_types<AnyCpu>}}};
#endif

}  // namespace

std::span<const NarrowVariant> narrow_variants() { return runnable(variants); }

}  // namespace npushmem::moe
