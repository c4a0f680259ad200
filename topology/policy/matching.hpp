// SPDX-License-Identifier: BSD-3-Clause
// Minimum-cost matching of rows to columns.
#pragma once

#include <cstddef>
#include <vector>

#include "topology/machine/distance.hpp"

namespace npushmem::topology {

// The column of each row, no column twice: the fewest rows in the farthest class, then the fewest in the next, and so
// on, then the least total rank. Needs at least as many columns as rows. The Hungarian method: about rows^2 * columns
// steps.
std::vector<std::size_t> cheapest_matching(const CostTable& costs);

}  // namespace npushmem::topology
