// The two greedy passes that users of NVSHMEM know, for comparison with the default.
#pragma once

#include "topology/cost_table.hpp"

namespace npushmem::topology {

// Rows are PEs, columns rails; every PE gets max(1, rails / PEs) rails, at most max_per_pe. First pass: pairs in order
// of their class give every PE its nearest rails. Second pass: a PE moves off a rail that two or more use, onto an
// equally near one that fewer use; never to a worse class.
Choice choose_nearest(const CostTable& costs, std::size_t max_per_pe);

}  // namespace npushmem::topology
