// The two greedy passes of NVSHMEM, exactly, for users who compare with it.
#pragma once

#include "topology/cost_table.hpp"

namespace npushmem::topology {

// Rows are PEs, in the order of their ranks, columns rails. A PE has max(1, rails / PEs) places, at most max_per_pe.
// Classes are equally near when their bandwidths are: PIX and PXB are. First pass: a PE takes the rails that are as
// near as its nearest one, the better class first, until its places are full; the other places stay empty. Second pass:
// for each place of each PE, the rails are tried in the same order; the place moves to an equally near rail that at
// least two users fewer have than the present one. That may give a PE one rail in two places; it is listed once. The
// loads of other jobs do not count.
Choice choose_nearest(const CostTable& costs, std::size_t max_per_pe);

}  // namespace npushmem::topology
