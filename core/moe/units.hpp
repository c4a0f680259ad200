// Strong types of the MoE code. Tokens, rows, elements and bytes are different things that all look like integers;
// mixing them is the classic mistake of such kernels, so each has its type and the only way from rows to bytes is a
// 64-bit product written here.
#pragma once

#include <compare>
#include <cstdint>

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

}  // namespace npushmem::moe
