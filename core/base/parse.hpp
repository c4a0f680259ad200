// SPDX-License-Identifier: BSD-3-Clause
// Strict parsers: the whole text must be the value. The message of a failure states the accepted syntax. They use no
// locale.
#pragma once

#include <chrono>
#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "npushmem/plugin/status.hpp"

namespace npushmem {

// Splits at every `separator` and trims blanks from the parts; "a,,b" gives three parts, "" gives none.
std::vector<std::string> split(std::string_view text, char separator);

// Returns the text without leading and trailing blanks and tabs.
std::string_view trimmed(std::string_view text);

// Returns the candidate with the smallest edit distance to `name`, if it is at most a third of the name's length.
// Otherwise the only candidate that begins with `name`, or "".
std::string nearest(std::string_view name, const std::vector<std::string>& candidates);

std::string lowercase(std::string_view text);

// A number of bytes. A type of its own, so that the configuration table prints and parses it as a size.
struct ByteCount {
    std::uint64_t value = 0;
    friend bool operator==(ByteCount, ByteCount) = default;
};

using Duration = std::chrono::nanoseconds;

// Accepts 0/1, true/false, yes/no, on/off, in any case.
Result<bool> parse_bool(std::string_view text);
// Accepts a decimal integer in [low, high].
Result<std::int64_t> parse_integer(std::string_view text, std::int64_t low, std::int64_t high);
// Accepts an integer with optional K, M, G, T (powers of 1024; "KiB", "KB" and "k" mean the same).
Result<ByteCount> parse_size(std::string_view text);
// Accepts a number with ns, us, ms, s (default), m or h. Rounds to nanoseconds; a value above 0 gives at least 1 ns.
Result<Duration> parse_duration(std::string_view text);

// Formats 1073741824 as "1 GiB" and 1500 as "1500 B": exactly if divisible, otherwise with one decimal.
std::string format_size(std::uint64_t bytes);
// Formats 1500000 ns as "1.5 ms".
std::string format_duration(Duration duration);

}  // namespace npushmem
