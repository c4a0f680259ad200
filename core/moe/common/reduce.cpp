// SPDX-License-Identifier: BSD-3-Clause
#include "core/moe/common/reduce.hpp"

#include <array>
#include <cstdint>

namespace npushmem::moe {
namespace {

// Number of columns summed at a time. Measured on rows in memory: 64 is up to a third faster than 512, because each row
// is then read two lines at a time in step with the others. On rows in the cache no size is faster.
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
    static void run(void* out, const void* const* rows, const float* weights, std::size_t count, std::size_t columns) {
        reduce_columns<Input, Output>(out, rows, weights, count, columns);
    }
};

#if defined(__x86_64__)
struct Avx2 {
    template <class Input, class Output>
    [[gnu::target("avx2")]] static void run(void* out, const void* const* rows, const float* weights, std::size_t count,
                                            std::size_t columns) {
        reduce_columns<Input, Output>(out, rows, weights, count, columns);
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
constexpr std::array<ReduceVariant, 2> variants{{{"avx2", &pick<Avx2>}, {"portable", &pick<Portable>}}};
#else
constexpr std::array<ReduceVariant, 1> variants{{{"portable", &pick<Portable>}}};
#endif

}  // namespace

std::span<const ReduceVariant> reduce_variants() {
#if defined(__x86_64__)
    if (__builtin_cpu_supports("avx2") == 0) return std::span(variants).last(1);
#endif
    return variants;
}

}  // namespace npushmem::moe
