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

// The sums of rows, or of a tree of rows, for up to `block` columns from `first` on.
struct FlatRows {
    const void* const* rows;
    const float* weights;
    std::size_t count;

    [[nodiscard]] std::size_t size() const { return count; }

    template <class Input>
    [[gnu::always_inline]] void add_up(float* sums, std::size_t first, std::size_t columns) const {
        for (std::size_t i = 0; i < count; ++i)
            add_row(sums, static_cast<const Input*>(rows[i]) + first, weights[i], columns);
    }
};

struct TreeRows {
    const void* const* rows;
    const float* weights;
    std::span<const std::uint8_t> ends;

    [[nodiscard]] std::size_t size() const { return ends.back(); }

    template <class Input>
    [[gnu::always_inline]] void add_up(float* sums, std::size_t first, std::size_t columns) const {
        std::size_t i = 0;
        for (const std::uint8_t end : ends) {
            std::array<float, block> part;
            for (std::size_t c = 0; c < columns; ++c) part[c] = 0.0F;
            for (; i < end; ++i) add_row(part.data(), static_cast<const Input*>(rows[i]) + first, weights[i], columns);
            for (std::size_t c = 0; c < columns; ++c) sums[c] += to_float(from_float<Input>(part[c]));
        }
    }
};

template <class Input, class Output, class Rows>
[[gnu::always_inline]] inline void reduce_block(Output* out, const Rows& rows, std::size_t first, std::size_t columns) {
    std::array<float, block> sums;
    for (std::size_t c = 0; c < columns; ++c) sums[c] = 0.0F;
    rows.template add_up<Input>(sums.data(), first, columns);
    for (std::size_t c = 0; c < columns; ++c) out[first + c] = from_float<Output>(sums[c]);
}

// Whole blocks with their length known to the compiler, so that it vectorises them without checks, then the rest.
template <class Input, class Output, class Rows>
[[gnu::always_inline]] inline void reduce_columns(void* out, const Rows& rows, std::size_t columns) {
    auto* target = static_cast<Output*>(out);
    std::size_t first = 0;
    for (; first + block <= columns; first += block) reduce_block<Input>(target, rows, first, block);
    if (first < columns) reduce_block<Input>(target, rows, first, columns - first);
}

struct Portable {
    template <class Input, class Output, class Rows>
    static void run(void* out, const Rows& rows, const SumShape& shape, std::span<const void* const>) {
        reduce_columns<Input, Output>(out, rows, shape.columns);
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

    // Eight vectors of a row at a time. Measured with AVX-512 on rows of 14 KB in memory: a fifth faster than four, for
    // one to eight rows; sixteen take twice the time.
    static constexpr std::size_t block_columns = 8 * lanes;

    // The block that is summed, and what is loaded into the cache meanwhile.
    struct Progress {
        std::size_t first;                  // column
        std::size_t columns;                // of a row
        std::size_t ahead;                  // columns from the block to the one that is loaded; at most a row
        std::span<const void* const> next;  // rows of the next sum

        // The part of row i that is loaded, or of the next sum's row.
        template <class Input>
        [[gnu::always_inline]] const Input* load_address(const void* row, std::size_t i) const {
            const std::size_t column = first + ahead;
            if (column < columns) return static_cast<const Input*>(row) + column;
            if (i < next.size()) return static_cast<const Input*>(next[i]) + (column - columns);
            return static_cast<const Input*>(row) + first;
        }
    };

    // Measured with AVX-512 on rows of 14 KB in memory: with two to sixteen rows up to a fifth faster than loading the
    // same block of all rows of the next sum. Without loads ahead, a sum takes about the time of its loads plus that of
    // its arithmetic.
    static constexpr std::size_t columns_ahead(std::size_t rows, std::size_t columns) {
        constexpr std::size_t blocks_of_all_rows = 40;
        constexpr std::size_t min_blocks = 3;
        const std::size_t blocks = std::max(min_blocks, blocks_of_all_rows / std::max<std::size_t>(rows, 1));
        return std::min(blocks, columns / block_columns) * block_columns;
    }

    // Multiplies a block of row i by the weight, and calls take(v, two) for each two vectors.
    template <std::size_t vectors, class Input, class Output, class Take>
    [[gnu::always_inline]] static void scale(const void* row, float weight, std::size_t i, const Progress& at,
                                             const Take& take) {
        const Input* const from = static_cast<const Input*>(row) + at.first;
        const Input* const ahead = at.template load_address<Input>(row, i);
#pragma GCC unroll 16
        for (std::size_t v = 0; v < vectors; v += 2) {
            if constexpr (vectors * lanes == block_columns) {
#pragma GCC unroll 4
                for (std::size_t c = 0; c < 2 * lanes; c += 64 / sizeof(Input))
                    __builtin_prefetch(ahead + v * lanes + c, 0, 3);
            }
            Float two[2];
            load_two<Output>(two, from + v * lanes);
            two[0] *= weight;
            two[1] *= weight;
            take(v, two);
        }
    }

    template <std::size_t vectors, class Input, class Output>
    [[gnu::always_inline]] static void add_scaled(Float* sums, const void* row, float weight, std::size_t i,
                                                  const Progress& at) {
        scale<vectors, Input, Output>(row, weight, i, at, [&](std::size_t v, const Float* two) {
            sums[v] += two[0];
            sums[v + 1] += two[1];
        });
    }

    [[gnu::always_inline]] static void round_word(Float& value) {
        Bits high;
        round(high, value);
        value = reinterpret_cast<Float>(high & 0xFFFF0000U);
    }

    // Rounds to the type of the rows.
    template <class Input, class Output>
    [[gnu::always_inline]] static void round_two(Float* two) {
        if constexpr (in_words<Input, Output>) {
            round_word(two[0]);
            round_word(two[1]);
        } else if constexpr (!std::is_same_v<Input, float>) {
            Input rounded[2 * lanes];
            store(rounded, two[0]);
            store(rounded + lanes, two[1]);
            load(two[0], rounded);
            load(two[1], rounded + lanes);
        }
    }

    template <std::size_t vectors, class Input, class Output>
    [[gnu::always_inline]] static void add_up(Float* sums, const FlatRows& flat, const Progress& at) {
        for (std::size_t i = 0; i < flat.count; ++i)
            add_scaled<vectors, Input, Output>(sums, flat.rows[i], flat.weights[i], i, at);
    }
    // A part begins with its first row, not with 0: they differ in the sign of a zero, which the sum does not keep.
    template <std::size_t vectors, class Input, class Output>
    [[gnu::always_inline]] static void add_up(Float* sums, const TreeRows& tree, const Progress& at) {
        std::size_t i = 0;
        for (const std::uint8_t end : tree.ends) {
            Float part[vectors];
            scale<vectors, Input, Output>(tree.rows[i], tree.weights[i], i, at, [&](std::size_t v, const Float* two) {
                part[v] = two[0];
                part[v + 1] = two[1];
            });
            while (++i < end) add_scaled<vectors, Input, Output>(part, tree.rows[i], tree.weights[i], i, at);
#pragma GCC unroll 16
            for (std::size_t v = 0; v < vectors; v += 2) {
                round_two<Input, Output>(part + v);
                sums[v] += part[v];
                sums[v + 1] += part[v + 1];
            }
        }
    }

    // Sums one block. With AVX-512 all of it stays in registers.
    template <std::size_t vectors, bool streaming, class Input, class Output, class Rows>
    [[gnu::always_inline]] static void reduce_vectors(Output* target, const Rows& rows, const Progress& at) {
        Float sums[vectors] = {};
        add_up<vectors, Input, Output>(sums, rows, at);
#pragma GCC unroll 16
        for (std::size_t v = 0; v < vectors; v += 2)
            store_two<streaming, Input>(target + at.first + v * lanes, sums + v);
    }

    template <bool streaming, class Input, class Output, class Rows>
    [[gnu::always_inline]] static void reduce(Output* target, const Rows& rows, std::size_t columns,
                                              const std::span<const void* const>& next) {
        Progress at{0, columns, columns_ahead(rows.size(), columns), next};
        for (; at.first + block_columns <= columns; at.first += block_columns)
            reduce_vectors<8, streaming, Input>(target, rows, at);
        for (; at.first + 2 * lanes <= columns; at.first += 2 * lanes)
            reduce_vectors<2, streaming, Input>(target, rows, at);
        if (at.first < columns) reduce_block<Input>(target, rows, at.first, columns - at.first);
    }

    template <class Input, class Output, class Rows>
    [[gnu::always_inline]] static void reduce(void* out, const Rows& rows, const SumShape& shape,
                                              const std::span<const void* const>& next) {
        auto* const target = static_cast<Output*>(out);
        const bool fits = reinterpret_cast<std::uintptr_t>(out) % sizeof(Bits) == 0;
        if (shape.streaming && fits) return reduce<true, Input>(target, rows, shape.columns, next);
        reduce<false, Input>(target, rows, shape.columns, next);
    }
};

struct Avx2 {
    template <class Input, class Output, class Rows>
    [[gnu::target("avx2")]] static void run(void* out, const Rows& rows, const SumShape& shape,
                                            std::span<const void* const> next) {
        Vector<Lanes8>::reduce<Input, Output>(out, rows, shape, next);
    }
};

struct Avx512 {
    template <class Input, class Output, class Rows>
    [[gnu::target("avx512f,avx512bw,avx512dq,avx512vl")]] static void run(void* out, const Rows& rows,
                                                                          const SumShape& shape,
                                                                          std::span<const void* const> next) {
        Vector<Lanes16>::reduce<Input, Output>(out, rows, shape, next);
    }
};
#endif

template <class Cpu, class Input, class Output>
void flat_sum(void* out, const void* const* rows, const float* weights, std::size_t count, const SumShape& shape,
              std::span<const void* const> next) {
    Cpu::template run<Input, Output>(out, FlatRows{rows, weights, count}, shape, next);
}

template <class Cpu, class Input, class Output>
void tree_sum(void* out, const void* const* rows, const float* weights, std::span<const std::uint8_t> ends,
              const SumShape& shape, std::span<const void* const> next) {
    Cpu::template run<Input, Output>(out, TreeRows{rows, weights, ends}, shape, next);
}

// Calls visit with values of the two element types.
template <class Visit>
auto with_types(ElementType input, ElementType output, const Visit& visit) {
    const auto with_input = [&](auto in) {
        switch (output) {
            case ElementType::bfloat16: return visit(in, Bfloat16{});
            case ElementType::half: return visit(in, Half{});
            case ElementType::float32: break;
        }
        return visit(in, float{});
    };
    switch (input) {
        case ElementType::bfloat16: return with_input(Bfloat16{});
        case ElementType::half: return with_input(Half{});
        case ElementType::float32: break;
    }
    return with_input(float{});
}

template <class Cpu>
ReduceFunction pick_flat(ElementType input, ElementType output) {
    return with_types(input, output,
                      [](auto in, auto out) -> ReduceFunction { return &flat_sum<Cpu, decltype(in), decltype(out)>; });
}

template <class Cpu>
TreeFunction pick_tree(ElementType input, ElementType output) {
    return with_types(input, output,
                      [](auto in, auto out) -> TreeFunction { return &tree_sum<Cpu, decltype(in), decltype(out)>; });
}

template <class Cpu>
constexpr ReduceVariant variant(std::string_view name) {
    return {name, &pick_flat<Cpu>, &pick_tree<Cpu>};
}

#if defined(__x86_64__)
constexpr std::array<ReduceVariant, 3> variants{variant<Avx512>("avx512"), variant<Avx2>("avx2"),
                                                variant<Portable>("portable")};
#else
constexpr std::array<ReduceVariant, 1> variants{variant<Portable>("portable")};
#endif

}  // namespace

std::span<const ReduceVariant> reduce_variants() { return runnable(variants); }

}  // namespace npushmem::moe
