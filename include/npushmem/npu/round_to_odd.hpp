// SPDX-License-Identifier: BSD-3-Clause
// Rounds double to float such that a second rounding, to a type of at most 22 significant bits, is still correct.
#pragma once

#include <bit>
#include <cstdint>

namespace npushmem::npu::detail {

// Truncates inexact results and sets their last bit ("round to odd"), so that every later tie can be decided.
constexpr float round_to_odd(double value) {
    const auto nearest = static_cast<float>(value);
    const auto back = static_cast<double>(nearest);
    if (back == value || value != value) return nearest;
    auto bits = std::bit_cast<std::uint32_t>(nearest);
    const bool away_from_zero = value < 0 ? back < value : back > value;
    if (away_from_zero) --bits;
    return std::bit_cast<float>(bits | 1U);
}

}  // namespace npushmem::npu::detail
