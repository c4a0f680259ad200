// Rows of cells, rendered so that columns line up.
#pragma once

#include <string>
#include <vector>

namespace npushmem::topology {

// Every line begins with `indent` blanks; columns are two blanks apart; no blanks at a line's end.
std::string render_table(const std::vector<std::vector<std::string>>& rows, std::size_t indent);

}  // namespace npushmem::topology
