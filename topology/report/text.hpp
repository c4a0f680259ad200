// Text of reports: tables, counts and lists of PEs.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <string>
#include <string_view>
#include <vector>

namespace npushmem::topology {

// Renders rows of cells with aligned columns. Every line begins with `indent` blanks; columns are two blanks apart; no
// line ends in blanks.
std::string render_table(const std::vector<std::vector<std::string>>& rows, std::size_t indent);

// "1 core", "3 cores".
std::string counted(std::size_t count, std::string_view one);

// A short list of PE numbers, which are in rising order: "3", "0-7", "0,8..56" (every eighth), "0-3,8,10". After six
// pieces it counts the rest: "0,2,5,7,11,12 +9 more".
std::string pe_ranges(std::span<const std::uint32_t> pes);

}  // namespace npushmem::topology
