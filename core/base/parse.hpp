// Text to value, strictly: the whole text must be the value. A failure says what was accepted.
#pragma once

#include <chrono>
#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "npushmem/plugin/status.hpp"

namespace npushmem {

// A number of bytes, distinct from other integers so that the configuration table prints and parses it as a size.
struct ByteCount {
    std::uint64_t value = 0;
    friend bool operator==(ByteCount, ByteCount) = default;
};

using Duration = std::chrono::nanoseconds;

// bool: 0/1, true/false, yes/no, on/off, any case.
Result<bool> parse_bool(std::string_view text);
// Decimal integer within [low, high].
Result<std::int64_t> parse_integer(std::string_view text, std::int64_t low, std::int64_t high);
// Integer with optional K, M, G, T (powers of 1024; "KiB", "KB" and "k" mean the same).
Result<ByteCount> parse_size(std::string_view text);
// Number with ns, us, ms, s (default), m, h, to the nanosecond, at least 1 unless it is 0; "0" is no duration.
Result<Duration> parse_duration(std::string_view text);

// 1073741824 → "1 GiB"; 1500 → "1500 B": exact if it divides, otherwise with one decimal.
std::string format_size(std::uint64_t bytes);
// 1500000 ns → "1.5 ms".
std::string format_duration(Duration duration);

}  // namespace npushmem
