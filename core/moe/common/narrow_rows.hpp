// SPDX-License-Identifier: BSD-3-Clause
// Rows of 8-bit elements with scales: half or a quarter of the bytes of a row of another type.
//
// A row has `hidden` elements of one byte, zeros up to a multiple of 4 bytes, one float for each `block` elements (the
// last may have fewer), and zeros up to a multiple of 64 bytes, a line of the caches. The value of an element is its
// own times the scale of its block, in float.
//
// Quantization, with M the largest finite value of the type (448, 57344 or 127):
//
//   scale    largest finite magnitude in the block / M, at least 2^-126, at most the largest float whose product with M
//            is finite; 1 for a block of zeros
//   element  value * (1 / scale) in float, rounded to nearest, ties to even, and at most M
//
// So a finite value v becomes one within  |v| * e + scale * d + |v| * 2^-20 + 2^-149  of it, where e is half the unit
// of the type's fraction (2^-4, 2^-3, 0) and d half its smallest step (2^-10, 2^-17, 1/2). The last two terms are for
// the four roundings in float.
//
// E4M3 has no infinity: an infinity becomes a NaN there. INT8 has neither: a block with any gets the scale NaN, and a
// NaN itself becomes 0. Types: OCP 8-bit Floating Point Specification, revision 1.0.
#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <span>
#include <string_view>

#include "core/moe/common/element.hpp"
#include "core/moe/common/reduce.hpp"

namespace npushmem::moe {

// The values continue those of ElementType. none: rows of an ElementType.
enum class NarrowType : std::int32_t { none = 0, e4m3 = 4, e5m2 = 5, int8 = 6 };

constexpr bool is_valid(NarrowType type) {
    return type == NarrowType::none || (type >= NarrowType::e4m3 && type <= NarrowType::int8);
}

constexpr std::string_view name_of(NarrowType type) {
    switch (type) {
        case NarrowType::none: return "none";
        case NarrowType::e4m3: return "e4m3";
        case NarrowType::e5m2: return "e5m2";
        case NarrowType::int8: return "int8";
    }
    return "unknown";
}

class NarrowLayout {
public:
    static constexpr std::size_t default_block = 128;

    // hidden: at least 1; block: elements that share a scale, 0: 128, hidden or more: all.
    constexpr NarrowLayout(std::size_t hidden, std::size_t block)
        : hidden_(hidden), block_(std::min(block == 0 ? default_block : block, hidden)) {}

    [[nodiscard]] constexpr std::size_t hidden() const { return hidden_; }
    [[nodiscard]] constexpr std::size_t block() const { return block_; }
    [[nodiscard]] constexpr std::size_t blocks() const { return (hidden_ + block_ - 1) / block_; }
    [[nodiscard]] constexpr Bytes scales() const { return aligned_up(Bytes{hidden_}, sizeof(float)); }
    [[nodiscard]] constexpr Bytes row() const { return aligned_up(scales() + Bytes{sizeof(float) * blocks()}, 64); }

private:
    std::size_t hidden_;
    std::size_t block_;
};

// Functions for one type of quantized rows and one element type. quantize and dequantize convert one row; `wide`:
// [hidden]; `narrow`: layout.row() bytes, aligned to 4. reduce sums quantized rows to the element type.
struct NarrowFunctions {
    void (*quantize)(const NarrowLayout& layout, const void* wide, std::byte* narrow);
    void (*dequantize)(const NarrowLayout& layout, const std::byte* narrow, void* wide);
    ReduceFunction reduce;
};

// type: not none.
struct NarrowVariant {
    std::string_view name;
    NarrowFunctions (*functions)(NarrowType type, ElementType wide);
};

// The variants that this CPU can run, fastest first; the last one runs everywhere. All give the same bits.
std::span<const NarrowVariant> narrow_variants();

inline NarrowFunctions best_narrow(NarrowType type, ElementType wide) {
    return narrow_variants().front().functions(type, wide);
}

}  // namespace npushmem::moe
