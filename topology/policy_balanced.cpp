#include "topology/policy_balanced.hpp"

#include <algorithm>

#include "topology/spread.hpp"

namespace npushmem::topology {
namespace {

Choice choose_primary(const CostTable& costs, const Bins& rails) {
    Choice choice;
    for (const auto& rail : Spread(costs, rails).solve()) choice.push_back({rail.value()});  // nothing is ever full
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

// The first stays first: it is the one that was chosen for nearness and load.
void sort_extras(const CostTable& costs, Choice& choice) {
    for (std::size_t pe = 0; pe < choice.size(); ++pe) {
        std::sort(choice[pe].begin() + 1, choice[pe].end(), [&](std::size_t a, std::size_t b) {
            return costs[pe][a].rank != costs[pe][b].rank ? costs[pe][a].rank < costs[pe][b].rank : a < b;
        });
    }
}

}  // namespace

// The same spreading with the parts exchanged: rails look for the PEs they are nearest to, all of which have one.
void add_unused(const CostTable& costs, std::size_t max_per_pe, const Bins& rails, Choice& choice) {
    const auto unused = unused_rails(choice, rails);
    const CostTable by_rail = transposed(costs);
    CostTable rows;
    for (const std::size_t rail : unused) rows.push_back(by_rail[rail]);
    const auto pes = Spread(rows, {std::vector<std::size_t>(costs.size(), 1), {}, {}, max_per_pe}).solve();
    for (std::size_t i = 0; i < unused.size(); ++i) {
        if (pes[i]) choice[*pes[i]].push_back(unused[i]);
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
