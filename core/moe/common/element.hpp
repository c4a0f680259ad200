// SPDX-License-Identifier: BSD-3-Clause
// Strong types of the MoE code. Tokens, rows, elements and bytes are all integers, and kernels easily mix them up. So
// each has its own type, and only the 64-bit products in this file convert rows to bytes.
#pragma once

#include <bit>
#include <compare>
#include <cstdint>
#include <string_view>

namespace npushmem::moe {

template <class Tag>
class Quantity {
public:
    constexpr Quantity() = default;
    constexpr explicit Quantity(std::uint64_t value) : value_(value) {}

    [[nodiscard]] constexpr std::uint64_t value() const { return value_; }
    constexpr auto operator<=>(const Quantity&) const = default;
    constexpr Quantity& operator+=(Quantity other) { return value_ += other.value_, *this; }
    friend constexpr Quantity operator+(Quantity a, Quantity b) { return Quantity{a.value_ + b.value_}; }
    friend constexpr Quantity operator*(Quantity a, std::uint64_t times) { return Quantity{a.value_ * times}; }

private:
    std::uint64_t value_ = 0;
};

using Bytes = Quantity<struct BytesTag>;
using Elements = Quantity<struct ElementsTag>;
using Tokens = Quantity<struct TokensTag>;
// A row is one expert's output for one token: a token chosen by k experts makes k rows.
using Rows = Quantity<struct RowsTag>;

// Size of one element; 1, 2 or 4 bytes in practice.
enum class ElementSize : std::uint32_t {};

constexpr Bytes bytes_of(Elements elements, ElementSize size) {
    return Bytes{elements.value() * static_cast<std::uint64_t>(size)};
}
constexpr Bytes bytes_of(Rows rows, Bytes row) { return Bytes{rows.value() * row.value()}; }
constexpr Rows rows_of(Tokens tokens, std::uint32_t top_k) { return Rows{tokens.value() * top_k}; }

// The smallest multiple of `unit` (a power of two) that is not below `bytes`.
constexpr Bytes aligned_up(Bytes bytes, std::uint64_t unit) { return Bytes{(bytes.value() + unit - 1) & ~(unit - 1)}; }

// Element types of the payload and their exact scalar conversions. The conversions round to nearest, ties to even, keep
// infinities and signed zeros, and turn every NaN into a quiet one. They are branch-free selects, so that a compiler
// can vectorise a loop of them; the reference and the fast reduction share them, and a test checks all 65,536 patterns.

enum class ElementType : std::int32_t { bfloat16 = 1, half = 2, float32 = 3 };

constexpr bool is_valid(ElementType type) { return type >= ElementType::bfloat16 && type <= ElementType::float32; }
constexpr ElementSize size_of(ElementType type) { return ElementSize{type == ElementType::float32 ? 4U : 2U}; }

constexpr std::string_view name_of(ElementType type) {
    switch (type) {
        case ElementType::bfloat16: return "bf16";
        case ElementType::half: return "half";
        case ElementType::float32: return "float";
    }
    return "unknown";
}

struct Bfloat16 {
    std::uint16_t bits;
};
struct Half {
    std::uint16_t bits;
};

[[gnu::always_inline]] constexpr float to_float(float value) { return value; }

[[gnu::always_inline]] constexpr float to_float(Bfloat16 value) {
    return std::bit_cast<float>(static_cast<std::uint32_t>(value.bits) << 16);
}

// Shifting the half's exponent and fraction into a float's place leaves the value too small by 2^112, denormals
// included; one exact multiplication corrects both. Exponent 31 (infinity, NaN) is handled separately.
[[gnu::always_inline]] constexpr float to_float(Half value) {
    const std::uint32_t sign = (value.bits & 0x8000U) << 16;
    const std::uint32_t magnitude = (value.bits & 0x7FFFU) << 13;
    const auto finite = std::bit_cast<std::uint32_t>(std::bit_cast<float>(magnitude) * 0x1p112F);
    const std::uint32_t special = magnitude | 0x7F800000U;
    return std::bit_cast<float>(sign | (magnitude >= 0x0F800000U ? special : finite));
}

template <class Element>
constexpr Element from_float(float value);

template <>
[[gnu::always_inline]] constexpr float from_float<float>(float value) {
    return value;
}

template <>
[[gnu::always_inline]] constexpr Bfloat16 from_float<Bfloat16>(float value) {
    const auto bits = std::bit_cast<std::uint32_t>(value);
    const std::uint32_t rounded = (bits + 0x7FFFU + ((bits >> 16) & 1U)) >> 16;
    const std::uint32_t quiet = (bits >> 16) | 0x40U;
    const bool is_nan = (bits & 0x7FFFFFFFU) > 0x7F800000U;
    return {static_cast<std::uint16_t>(is_nan ? quiet : rounded)};
}

// Three ranges: below 2^-14 the unit is 2^-24, which is the unit of a float next to 0.5, so adding 0.5 rounds; in the
// normal range the integer trick of bfloat16; from 65520 on infinity.
template <>
[[gnu::always_inline]] constexpr Half from_float<Half>(float value) {
    const auto bits = std::bit_cast<std::uint32_t>(value);
    const std::uint32_t sign = (bits >> 16) & 0x8000U;
    const std::uint32_t magnitude = bits & 0x7FFFFFFFU;
    const std::uint32_t clamped = magnitude < 0x38800000U ? magnitude : 0x38800000U;
    const std::uint32_t tiny = std::bit_cast<std::uint32_t>(std::bit_cast<float>(clamped) + 0.5F) - 0x3F000000U;
    const std::uint32_t normal = ((magnitude + 0xFFFU + ((magnitude >> 13) & 1U)) >> 13) - (112U << 10);
    const std::uint32_t huge = magnitude > 0x7F800000U ? 0x7E00U | (magnitude >> 13 & 0x3FFU) : 0x7C00U;
    const std::uint32_t finite = magnitude < 0x38800000U ? tiny : normal;
    return {static_cast<std::uint16_t>(sign | (magnitude >= 0x477FF000U ? huge : finite))};
}

}  // namespace npushmem::moe
