// The default policy: nearest class first, then the evenest load, then the best paths.
#pragma once

#include "topology/bins.hpp"
#include "topology/cost_table.hpp"

namespace npushmem::topology {

// Rows are PEs, columns rails; `rails` says what these carry already and how fast they are. Every PE gets one rail of
// its nearest class. Rails that nobody uses then go to PEs whose nearest class they are in as well, until every such
// rail is used or every such PE has max_per_pe. A rail that is farther from every PE than its nearest one, such as a
// NIC for storage, stays unused.
Choice choose_balanced(const CostTable& costs, std::size_t max_per_pe, const Bins& rails);

// The second half alone: adds unused rails of the PEs' nearest classes to a choice of one rail per PE, and orders them
// behind it by nearness.
void add_unused(const CostTable& costs, std::size_t max_per_pe, const Bins& rails, Choice& choice);

}  // namespace npushmem::topology
