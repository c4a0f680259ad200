// Rounding of sizes.
#pragma once

#include <cstdint>

namespace npushmem {

// The smallest multiple of `to` that is not below `value`; both in bytes. The sum must fit into 64 bits.
constexpr std::uint64_t rounded_up(std::uint64_t value, std::uint64_t to) { return (value + to - 1) / to * to; }

}  // namespace npushmem
