// The default policy: nearest class first, then the evenest load, then the best paths.
#pragma once

#include "topology/bins.hpp"
#include "topology/cost_table.hpp"

namespace npushmem::topology {

// Rows are PEs, columns rails; `rails` says what these carry already and how fast they are. Every PE gets one rail of
// its nearest class. Rails that nobody uses then go, each to a PE for which it is nearest, until every rail is used or
// every PE it is nearest to has max_per_pe.
Choice choose_balanced(const CostTable& costs, std::size_t max_per_pe, const Bins& rails);

// The second half alone: adds unused rails to a choice of one rail per PE, and orders them behind it by nearness.
void add_unused(const CostTable& costs, std::size_t max_per_pe, const Bins& rails, Choice& choice);

}  // namespace npushmem::topology
