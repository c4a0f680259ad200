// Cost tables for tests: written by hand, or drawn from a seeded generator.
#pragma once

#include <random>
#include <vector>

#include "topology/cost_table.hpp"

namespace npushmem::topology {

// A table of classes, each number one DistanceClass (0 is PIX); ranks follow the classes.
inline CostTable table_of_classes(const std::vector<std::vector<int>>& classes) {
    std::vector<std::vector<Distance>> distances;
    for (const auto& row : classes) {
        auto& out = distances.emplace_back();
        for (const int value : row) out.push_back({static_cast<DistanceClass>(value), 0, 0});
    }
    return rank_distances(distances);
}

// Few classes and few bandwidths, so that equal ones are common.
inline CostTable random_table(std::mt19937& random, std::size_t rows, std::size_t columns) {
    std::vector<std::vector<Distance>> distances(rows, std::vector<Distance>(columns));
    for (auto& row : distances) {
        for (auto& entry : row) entry = {static_cast<DistanceClass>(random() % 3), random() % 2 + 1, 0};
    }
    return rank_distances(distances);
}

}  // namespace npushmem::topology
