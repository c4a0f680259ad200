// What a routing file may say, in either form.
#pragma once

#include <cstdint>
#include <limits>

namespace npushmem::moe {

constexpr std::int32_t largest_number = std::numeric_limits<std::int32_t>::max();
constexpr std::int32_t max_file_top_k = 4096;
// Of one rank. No machine has more; a bound keeps a damaged count from asking for all memory.
constexpr std::int64_t max_file_tokens = std::int64_t{1} << 24;

}  // namespace npushmem::moe
