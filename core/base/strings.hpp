// Small text helpers shared by parsers: no locale, no allocation beyond the result.
#pragma once

#include <string>
#include <string_view>
#include <vector>

namespace npushmem {

// Splits at every `separator`; "a,,b" gives three parts, "" gives none. Parts are trimmed of blanks.
std::vector<std::string> split(std::string_view text, char separator);

// Without leading and trailing blanks and tabs.
std::string_view trimmed(std::string_view text);

// The candidate with the smallest edit distance to `name`, or "" when none is near enough to be a misspelling of it
// (distance above a third of the name's length). Without such a one, the only candidate that begins with `name`.
std::string nearest(std::string_view name, const std::vector<std::string>& candidates);

std::string lowercase(std::string_view text);

}  // namespace npushmem
