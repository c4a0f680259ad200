// SPDX-License-Identifier: BSD-3-Clause
#include "core/base/parse.hpp"

#include <fmt/core.h>

#include <algorithm>
#include <array>
#include <cctype>
#include <charconv>
#include <cmath>
#include <limits>
#include <numeric>

namespace npushmem {

std::string_view trimmed(std::string_view text) {
    const auto first = text.find_first_not_of(" \t");
    if (first == std::string_view::npos) return {};
    return text.substr(first, text.find_last_not_of(" \t") - first + 1);
}

std::vector<std::string> split(std::string_view text, char separator) {
    std::vector<std::string> parts;
    if (text.empty()) return parts;
    for (std::size_t begin = 0;;) {
        const auto end = text.find(separator, begin);
        parts.emplace_back(trimmed(text.substr(begin, end - begin)));
        if (end == std::string_view::npos) return parts;
        begin = end + 1;
    }
}

std::string lowercase(std::string_view text) {
    std::string out(text);
    std::transform(out.begin(), out.end(), out.begin(),
                   [](unsigned char c) { return static_cast<char>(std::tolower(c)); });
    return out;
}

namespace {

// Levenshtein distance with one row of state.
std::size_t edit_distance(std::string_view a, std::string_view b) {
    std::vector<std::size_t> row(b.size() + 1);
    std::iota(row.begin(), row.end(), std::size_t{0});
    for (std::size_t i = 0; i < a.size(); ++i) {
        std::size_t diagonal = row[0];
        row[0] = i + 1;
        for (std::size_t j = 0; j < b.size(); ++j) {
            const std::size_t substitute = diagonal + (a[i] == b[j] ? 0 : 1);
            diagonal = row[j + 1];
            row[j + 1] = std::min({substitute, row[j] + 1, row[j + 1] + 1});
        }
    }
    return row[b.size()];
}

// Returns the candidate that `name` is the beginning of, if there is exactly one.
std::string only_completion(std::string_view name, const std::vector<std::string>& candidates) {
    constexpr std::size_t shortest = 3;
    std::string found;
    for (const auto& candidate : candidates) {
        if (name.size() < shortest || !candidate.starts_with(name)) continue;
        if (!found.empty()) return {};
        found = candidate;
    }
    return found;
}

}  // namespace

std::string nearest(std::string_view name, const std::vector<std::string>& candidates) {
    std::string best;
    std::size_t best_distance = name.size() / 3 + 1;
    for (const auto& candidate : candidates) {
        const std::size_t distance = edit_distance(name, candidate);
        if (distance < best_distance) {
            best = candidate;
            best_distance = distance;
        }
    }
    return best.empty() ? only_completion(name, candidates) : best;
}

namespace {

struct Unit {
    std::string_view suffix;
    std::uint64_t factor;
};

constexpr std::uint64_t kib = 1024;
constexpr std::array<Unit, 5> size_units{
    {{"", 1}, {"k", kib}, {"m", kib* kib}, {"g", kib* kib* kib}, {"t", kib* kib* kib* kib}}};
constexpr std::array<Unit, 7> duration_units{{{"", 1'000'000'000},
                                              {"ns", 1},
                                              {"us", 1'000},
                                              {"ms", 1'000'000},
                                              {"s", 1'000'000'000},
                                              {"m", 60'000'000'000},
                                              {"h", 3'600'000'000'000}}};

Status refused(std::string_view text, std::string_view accepted) {
    return {Code::config, fmt::format("'{}' is not {}", text, accepted)};
}

// Returns the unit with this suffix, or null.
template <std::size_t N>
const Unit* find_unit(const std::array<Unit, N>& units, std::string_view suffix) {
    for (const auto& unit : units)
        if (unit.suffix == suffix) return &unit;
    return nullptr;
}

std::string_view without_byte_suffix(std::string_view unit) {
    if (unit.size() > 2 && unit.ends_with("ib")) return unit.substr(0, unit.size() - 2);
    if (unit.ends_with("b")) return unit.substr(0, unit.size() - 1);
    return unit;
}

}  // namespace

Result<bool> parse_bool(std::string_view text) {
    const std::string word = lowercase(trimmed(text));
    if (word == "1" || word == "true" || word == "yes" || word == "on") return true;
    if (word == "0" || word == "false" || word == "no" || word == "off") return false;
    return refused(text, "a switch (0 or 1, true or false, yes or no, on or off)");
}

Result<std::int64_t> parse_integer(std::string_view text, std::int64_t low, std::int64_t high) {
    const std::string_view word = trimmed(text);
    std::int64_t value = 0;
    const auto [end, error] = std::from_chars(word.data(), word.data() + word.size(), value);
    if (error != std::errc{} || end != word.data() + word.size() || value < low || value > high)
        return refused(text, fmt::format("an integer between {} and {}", low, high));
    return value;
}

Result<ByteCount> parse_size(std::string_view text) {
    const std::string word = lowercase(trimmed(text));
    std::uint64_t number = 0;
    const auto [end, error] = std::from_chars(word.data(), word.data() + word.size(), number);
    const auto rest = trimmed(std::string_view(word).substr(static_cast<std::size_t>(end - word.data())));
    const Unit* unit = find_unit(size_units, without_byte_suffix(rest));
    if (error != std::errc{} || unit == nullptr)
        return refused(text, "a size (an integer with optional K, M, G or T, such as 512M)");
    if (number > std::numeric_limits<std::uint64_t>::max() / unit->factor)
        return refused(text, "a size that fits into 64 bits");
    return ByteCount{number * unit->factor};
}

Result<Duration> parse_duration(std::string_view text) {
    const std::string word = lowercase(trimmed(text));
    double number = 0;
    const auto [end, error] = std::from_chars(word.data(), word.data() + word.size(), number);
    const auto rest = trimmed(std::string_view(word).substr(static_cast<std::size_t>(end - word.data())));
    const Unit* unit = find_unit(duration_units, rest);
    if (error != std::errc{} || unit == nullptr || !(number >= 0) || number * static_cast<double>(unit->factor) > 9e18)
        return refused(text, "a duration (a number with optional ns, us, ms, s, m or h, such as 2.5s)");
    // A duration above 0 does not become 0, which often means "none".
    const std::int64_t min_count = number > 0 ? 1 : 0;
    return Duration{std::max<std::int64_t>(min_count, std::llround(number * static_cast<double>(unit->factor)))};
}

std::string format_size(std::uint64_t bytes) {
    constexpr std::array<std::string_view, 5> names{"B", "KiB", "MiB", "GiB", "TiB"};
    std::size_t unit = 0;
    std::uint64_t whole = bytes;
    while (unit + 1 < names.size() && whole >= kib && whole % kib == 0) {
        whole /= kib;
        ++unit;
    }
    if (whole < 10 * kib) return fmt::format("{} {}", whole, names[unit]);
    auto fraction = static_cast<double>(whole);
    while (unit + 1 < names.size() && fraction >= static_cast<double>(kib)) {
        fraction /= static_cast<double>(kib);
        ++unit;
    }
    return fmt::format("{:.1f} {}", fraction, names[unit]);
}

std::string format_duration(Duration duration) {
    const auto ns = static_cast<double>(duration.count());
    if (ns < 1e3) return fmt::format("{} ns", duration.count());
    if (ns < 1e6) return fmt::format("{:.4g} us", ns / 1e3);
    if (ns < 1e9) return fmt::format("{:.4g} ms", ns / 1e6);
    return fmt::format("{:.4g} s", ns / 1e9);
}

}  // namespace npushmem
