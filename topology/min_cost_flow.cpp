#include "topology/min_cost_flow.hpp"

#include <algorithm>

namespace npushmem::topology {
namespace {

std::int64_t largest_rank(const CostTable& costs) {
    std::size_t largest = 0;
    for (const auto& row : costs) {
        for (const auto& entry : row) largest = std::max(largest, entry.rank);
    }
    return static_cast<std::int64_t>(largest);
}

}  // namespace

MinCostFlow::MinCostFlow(const CostTable& costs, Bins bins)
    : costs_(costs),
      bins_(bins.load.size()),
      capacity_(bins.capacity),
      load_costs_(bins, costs.size()),
      load_unit_(static_cast<std::int64_t>(costs.size()) * largest_rank(costs) + 1),
      load_(std::move(bins.load)),
      bin_of_(costs.size()),
      moves_(bins_, std::vector<Move>(bins_)) {
    for (const auto& row : costs) nearest_.push_back(nearest_class(row));
}

std::vector<std::optional<std::size_t>> MinCostFlow::solve() {
    for (std::size_t item = 0; item < costs_.size(); ++item) insert(item);
    return bin_of_;
}

bool MinCostFlow::allowed(std::size_t item, std::size_t bin) const {
    return costs_[item][bin].distance_class == nearest_[item];
}

std::int64_t MinCostFlow::rank(std::size_t item, std::size_t bin) const {
    return static_cast<std::int64_t>(costs_[item][bin].rank);
}

void MinCostFlow::insert(std::size_t item) {
    const auto steps = cheapest_paths(item);
    if (const auto end = best_end(steps)) follow(steps, *end);
}

// Bellman-Ford over bins: moving an item to a better rank costs less than nothing, so Dijkstra would not do. There is
// no negative cycle, because the placement so far is optimal.
std::vector<MinCostFlow::Step> MinCostFlow::cheapest_paths(std::size_t item) const {
    std::vector<Step> steps(bins_);
    for (std::size_t bin = 0; bin < bins_; ++bin) {
        if (allowed(item, bin)) steps[bin] = {rank(item, bin), std::nullopt, item, true};
    }
    for (bool changed = true; changed;) {
        changed = false;
        for (std::size_t from = 0; from < bins_; ++from) changed = relax(steps, from) || changed;
    }
    return steps;
}

bool MinCostFlow::relax(std::vector<Step>& steps, std::size_t from) const {
    bool changed = false;
    if (!steps[from].reached) return changed;
    for (std::size_t to = 0; to < bins_; ++to) {
        const auto& move = moves_[from][to];
        if (!move.possible) continue;
        const std::int64_t cost = steps[from].cost + move.cost;
        if (steps[to].reached && steps[to].cost <= cost) continue;
        steps[to] = {cost, from, move.item, true};
        changed = true;
    }
    return changed;
}

std::optional<std::size_t> MinCostFlow::best_end(const std::vector<Step>& steps) const {
    std::optional<std::size_t> best;
    std::int64_t best_cost = 0;
    for (std::size_t bin = 0; bin < bins_; ++bin) {
        if (!steps[bin].reached || load_[bin] >= capacity_) continue;
        const std::int64_t cost = steps[bin].cost + load_unit_ * load_costs_.of(bin, load_[bin] + 1);
        if (best && best_cost <= cost) continue;
        best = bin;
        best_cost = cost;
    }
    return best;
}

void MinCostFlow::follow(const std::vector<Step>& steps, std::size_t end) {
    ++load_[end];
    std::vector<std::size_t> touched;
    for (std::optional<std::size_t> bin = end; bin; bin = steps[*bin].from) {
        bin_of_[steps[*bin].item] = *bin;
        touched.push_back(*bin);
    }
    for (const std::size_t bin : touched) refresh_moves(bin);
}

void MinCostFlow::refresh_moves(std::size_t bin) {
    moves_[bin].assign(bins_, Move{});
    for (std::size_t item = 0; item < bin_of_.size(); ++item) {
        if (bin_of_[item] != bin) continue;
        for (std::size_t to = 0; to < bins_; ++to) {
            if (to == bin || !allowed(item, to)) continue;
            const std::int64_t cost = rank(item, to) - rank(item, bin);
            auto& move = moves_[bin][to];
            if (!move.possible || cost < move.cost) move = {cost, item, true};
        }
    }
}

}  // namespace npushmem::topology
