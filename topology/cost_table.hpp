// What policies work on: the distance of every PE to every rail, both in an order that does not depend on the input's.
#pragma once

#include <cstddef>
#include <vector>

#include "topology/distance.hpp"

namespace npushmem::topology {

// One row per item to be placed, one column per bin that takes it. Lower is better; `distance_class` decides first,
// `rank` (which also orders across classes) between equals.
struct CostEntry {
    DistanceClass distance_class = DistanceClass::sys;
    std::size_t rank = 0;
};

using CostTable = std::vector<std::vector<CostEntry>>;

// Replaces every distance by its rank among all distances that occur.
CostTable rank_distances(const std::vector<std::vector<Distance>>& distances);

// The best class of a row; `sys` for an empty one.
DistanceClass nearest_class(const std::vector<CostEntry>& row);

// The columns chosen for each row, best first.
using Choice = std::vector<std::vector<std::size_t>>;

}  // namespace npushmem::topology
