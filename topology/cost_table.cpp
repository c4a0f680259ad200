#include "topology/cost_table.hpp"

#include <algorithm>

namespace npushmem::topology {

CostTable rank_distances(const std::vector<std::vector<Distance>>& distances) {
    std::vector<Distance> distinct;
    for (const auto& row : distances) distinct.insert(distinct.end(), row.begin(), row.end());
    std::sort(distinct.begin(), distinct.end());
    distinct.erase(std::unique(distinct.begin(), distinct.end()), distinct.end());

    CostTable table;
    for (const auto& row : distances) {
        auto& out = table.emplace_back();
        for (const auto& entry : row) {
            const auto at = std::lower_bound(distinct.begin(), distinct.end(), entry);
            out.push_back({entry.distance_class, static_cast<std::size_t>(at - distinct.begin())});
        }
    }
    return table;
}

DistanceClass nearest_class(const std::vector<CostEntry>& row) {
    const auto best = std::min_element(row.begin(), row.end(), [](const CostEntry& a, const CostEntry& b) {
        return a.distance_class < b.distance_class;
    });
    return best == row.end() ? DistanceClass::sys : best->distance_class;
}

}  // namespace npushmem::topology
