#include "topology/policy_nearest.hpp"

#include <algorithm>
#include <numeric>

namespace npushmem::topology {
namespace {

// Less is nearer.
std::size_t nearness(const CostEntry& entry) {
    return static_cast<std::size_t>(std::max(entry.distance_class, DistanceClass::pxb));
}

// All rails of a PE, the nearest class first.
std::vector<std::size_t> by_class(const std::vector<CostEntry>& costs) {
    std::vector<std::size_t> rails(costs.size());
    std::iota(rails.begin(), rails.end(), std::size_t{0});
    std::stable_sort(rails.begin(), rails.end(),
                     [&](std::size_t a, std::size_t b) { return costs[a].distance_class < costs[b].distance_class; });
    return rails;
}

// The rails of a PE that it may have: those as near as its nearest one.
std::vector<std::size_t> eligible_rails(const std::vector<CostEntry>& costs) {
    auto rails = by_class(costs);
    const std::size_t nearest = nearness(costs[rails.front()]);
    std::erase_if(rails, [&](std::size_t rail) { return nearness(costs[rail]) != nearest; });
    return rails;
}

// Lets one place of a PE move, perhaps several times.
void move_off_crowded(std::size_t& place, const std::vector<std::size_t>& eligible, std::vector<std::size_t>& users) {
    for (const std::size_t rail : eligible) {
        if (users[place] < users[rail] + 2) continue;
        --users[place];
        ++users[rail];
        place = rail;
    }
}

void remove_repeated(std::vector<std::size_t>& rails) {
    std::vector<std::size_t> once;
    for (const std::size_t rail : rails)
        if (std::find(once.begin(), once.end(), rail) == once.end()) once.push_back(rail);
    rails = std::move(once);
}

}  // namespace

Choice choose_nearest(const CostTable& costs, std::size_t max_per_pe) {
    if (costs.empty() || costs.front().empty()) return Choice(costs.size());
    const std::size_t rails = costs.front().size();
    const std::size_t places = std::min(std::max<std::size_t>(1, rails / costs.size()), max_per_pe);
    std::vector<std::size_t> users(rails, 0);
    Choice choice;
    for (const auto& row : costs) {
        auto taken = eligible_rails(row);
        taken.resize(std::min(taken.size(), places));
        for (const std::size_t rail : taken) ++users[rail];
        choice.push_back(std::move(taken));
    }
    for (std::size_t pe = 0; pe < costs.size(); ++pe) {
        const auto eligible = eligible_rails(costs[pe]);
        for (std::size_t& place : choice[pe]) move_off_crowded(place, eligible, users);
        remove_repeated(choice[pe]);
    }
    return choice;
}

}  // namespace npushmem::topology
