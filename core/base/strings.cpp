#include "core/base/strings.hpp"

#include <algorithm>
#include <cctype>
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

// The candidate that `name` is the beginning of, if it is one only.
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

}  // namespace npushmem
