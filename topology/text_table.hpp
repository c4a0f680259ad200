// Rows of cells, rendered so that columns line up.
#pragma once

#include <cstddef>
#include <string>
#include <string_view>
#include <vector>

namespace npushmem::topology {

// Every line begins with `indent` blanks; columns are two blanks apart; no blanks at a line's end.
std::string render_table(const std::vector<std::vector<std::string>>& rows, std::size_t indent);

// "1 core", "3 cores".
std::string counted(std::size_t count, std::string_view one);

}  // namespace npushmem::topology
