// SPDX-License-Identifier: BSD-3-Clause
// Comparisons for waits. All are unsigned, so generations that pass 2^31, 2^32 or 2^63 stay ordered.
#pragma once

#include <cstdint>
#include <string_view>

namespace npushmem::npu {

enum class Compare : unsigned char { equal, not_equal, greater, greater_equal, less, less_equal };

constexpr bool satisfied(std::uint64_t seen, Compare compare, std::uint64_t value) {
    switch (compare) {
        case Compare::equal: return seen == value;
        case Compare::not_equal: return seen != value;
        case Compare::greater: return seen > value;
        case Compare::greater_equal: return seen >= value;
        case Compare::less: return seen < value;
        case Compare::less_equal: return seen <= value;
    }
    return false;
}

constexpr std::string_view name_of(Compare compare) {
    switch (compare) {
        case Compare::equal: return "==";
        case Compare::not_equal: return "!=";
        case Compare::greater: return ">";
        case Compare::greater_equal: return ">=";
        case Compare::less: return "<";
        case Compare::less_equal: return "<=";
    }
    return "?";
}

}  // namespace npushmem::npu
