// Order of names as people count them: mlx5_2 before mlx5_10.
#pragma once

#include <string_view>

namespace npushmem::topology {

// Strict weak order: runs of digits compare as numbers of any length, everything else byte by byte.
bool natural_less(std::string_view a, std::string_view b);

}  // namespace npushmem::topology
