#include "topology/policy_balanced.hpp"

#include <algorithm>
#include <optional>

#include "topology/min_cost_flow.hpp"

namespace npushmem::topology {
namespace {

Choice choose_primary(const CostTable& costs, const Bins& rails) {
    Choice choice;
    for (const auto& rail : MinCostFlow(costs, rails).solve())
        choice.push_back({rail.value()});  // nothing is ever full
    return choice;
}

std::vector<std::size_t> unused_rails(const Choice& choice, const Bins& rails) {
    std::vector<std::size_t> users = rails.load;
    for (const auto& chosen : choice) ++users[chosen.front()];
    std::vector<std::size_t> unused;
    for (std::size_t rail = 0; rail < users.size(); ++rail) {
        if (users[rail] == 0 && (rails.half.empty() || !rails.half[rail])) unused.push_back(rail);
    }
    return unused;
}

// The PEs that may have this rail as a further one, in class PIX whatever the class is, and the others in class SYS.
// None: it is of no PE's nearest class, as NICs for storage are.
std::optional<std::vector<CostEntry>> row_of_extra(const CostTable& costs, std::size_t rail) {
    const auto is_near = [&](const std::vector<CostEntry>& pe) { return pe[rail].distance_class == nearest_class(pe); };
    DistanceClass best = DistanceClass::sys;
    for (const auto& pe : costs)
        if (is_near(pe)) best = std::min(best, pe[rail].distance_class);
    if (std::none_of(costs.begin(), costs.end(), is_near)) return std::nullopt;
    std::vector<CostEntry> row;
    for (const auto& pe : costs) {
        const bool allowed = is_near(pe) && pe[rail].distance_class == best;
        row.push_back({allowed ? DistanceClass::pix : DistanceClass::sys, pe[rail].rank});
    }
    return row;
}

// The first stays first: it is the one that was chosen for nearness and load.
void sort_extras(const CostTable& costs, Choice& choice) {
    for (std::size_t pe = 0; pe < choice.size(); ++pe) {
        std::sort(choice[pe].begin() + 1, choice[pe].end(), [&](std::size_t a, std::size_t b) {
            return costs[pe][a].rank != costs[pe][b].rank ? costs[pe][a].rank < costs[pe][b].rank : a < b;
        });
    }
}

}  // namespace

// The same spreading with the parts exchanged: rails look for the PEs that may have them, all of which have one.
void add_unused(const CostTable& costs, std::size_t max_per_pe, const Bins& rails, Choice& choice) {
    std::vector<std::size_t> spread;
    CostTable rows;
    for (const std::size_t rail : unused_rails(choice, rails)) {
        auto row = row_of_extra(costs, rail);
        if (!row) continue;
        spread.push_back(rail);
        rows.push_back(std::move(*row));
    }
    const auto pes = MinCostFlow(rows, {std::vector<std::size_t>(costs.size(), 1), {}, {}, max_per_pe}).solve();
    for (std::size_t i = 0; i < spread.size(); ++i) {
        if (pes[i]) choice[*pes[i]].push_back(spread[i]);
    }
    sort_extras(costs, choice);
}

Choice choose_balanced(const CostTable& costs, std::size_t max_per_pe, const Bins& rails) {
    if (costs.empty() || costs.front().empty()) return Choice(costs.size());
    Choice choice = choose_primary(costs, rails);
    if (max_per_pe > 1) add_unused(costs, max_per_pe, rails, choice);
    return choice;
}

}  // namespace npushmem::topology
