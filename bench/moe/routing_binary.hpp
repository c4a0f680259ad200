// SPDX-License-Identifier: BSD-3-Clause
// The binary form of a routing file, and the limits of both forms. bench/perf/README.md describes the fields.
#pragma once

#include <cstdint>
#include <limits>
#include <string>
#include <string_view>

#include "core/moe/common/routing.hpp"

namespace npushmem::moe {

constexpr std::int32_t largest_number = std::numeric_limits<std::int32_t>::max();
constexpr std::int32_t max_file_top_k = 4096;
// Tokens of one rank. No machine has more; the limit keeps a damaged count from allocating all memory.
constexpr std::int64_t max_file_tokens = std::int64_t{1} << 24;

// Whether `bytes` begin like a binary routing file.
bool is_routing_binary(std::string_view bytes);

// `name` is the file's name, for messages. Rejects truncated or overlong files and values out of range; the message
// names field, rank, token, choice and value.
Result<Routing> parse_routing_binary(std::string_view bytes, std::string_view name);

// The file's bytes: the same on every machine.
std::string routing_binary(const Routing& routing);

}  // namespace npushmem::moe
