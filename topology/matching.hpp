// One column for every row and no column twice, as cheaply as that can be.
#pragma once

#include <cstddef>
#include <vector>

#include "topology/cost_table.hpp"

namespace npushmem::topology {

// The column of each row: as few rows as possible in the farthest class, then as few as possible in the next, and so
// on, then the least total rank. At least as many columns as rows. Takes about rows^2 * columns steps (the Hungarian
// method).
std::vector<std::size_t> cheapest_matching(const CostTable& costs);

}  // namespace npushmem::topology
