// SPDX-License-Identifier: BSD-3-Clause
#include "topology/policy/min_cost_flow.hpp"

#include <algorithm>
#include <utility>

namespace npushmem::topology {
namespace {

using Kind = std::pair<std::uint64_t, bool>;  // rate, and whether it has half an item more

// Half items per rate: compared by multiplying crosswise. Rates stay far below 2^50, items below 2^13, so nothing
// overflows.
struct Quotient {
    std::uint64_t halves;
    std::uint64_t rate;
    std::size_t kind;
};

bool less(const Quotient& a, const Quotient& b) { return a.halves * b.rate < b.halves * a.rate; }

// Rates are in megabits, which keeps them within the bound above.
constexpr std::uint64_t unit = 1'000'000;

std::vector<std::uint64_t> known_rates(const Bins& bins) {
    std::vector<std::uint64_t> rates(bins.load.size(), 1);
    std::uint64_t slowest = 0;
    for (const auto rate : bins.rates) {
        if (rate != 0 && (slowest == 0 || rate < slowest)) slowest = rate;
    }
    if (slowest == 0) return rates;
    const std::uint64_t divisor = slowest >= unit ? unit : 1;
    for (std::size_t i = 0; i < bins.rates.size(); ++i)
        rates[i] = (bins.rates[i] == 0 ? slowest : bins.rates[i]) / divisor;
    return rates;
}

std::vector<Kind> kinds_of(const Bins& bins) {
    std::vector<Kind> kinds;
    for (const auto rate : known_rates(bins)) {
        const std::size_t bin = kinds.size();
        kinds.emplace_back(rate, !bins.half.empty() && bins.half[bin]);
    }
    return kinds;
}

std::vector<Quotient> sorted_quotients(const std::vector<Kind>& kinds, std::size_t items) {
    std::vector<Quotient> out;
    for (std::size_t kind = 0; kind < kinds.size(); ++kind) {
        const auto& [rate, half] = kinds[kind];
        for (std::size_t count = 1; count <= items; ++count) out.push_back({2 * count + (half ? 1 : 0), rate, kind});
    }
    std::stable_sort(out.begin(), out.end(), less);
    return out;
}

}  // namespace

LoadCosts::LoadCosts(const Bins& bins, std::size_t items) {
    const auto kinds = kinds_of(bins);
    auto distinct = kinds;
    std::sort(distinct.begin(), distinct.end());
    distinct.erase(std::unique(distinct.begin(), distinct.end()), distinct.end());
    for (const auto& kind : kinds) {
        const auto at = std::lower_bound(distinct.begin(), distinct.end(), kind);
        kind_of_bin_.push_back(static_cast<std::size_t>(at - distinct.begin()));
    }
    const std::size_t carried = bins.load.empty() ? 0 : *std::max_element(bins.load.begin(), bins.load.end());
    const auto quotients = sorted_quotients(distinct, carried + items);
    costs_of_kind_.resize(distinct.size());
    std::int64_t place = 0;
    for (std::size_t i = 0; i < quotients.size(); ++i) {
        if (i == 0 || less(quotients[i - 1], quotients[i])) ++place;
        costs_of_kind_[quotients[i].kind].push_back(place);
    }
}

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

// Bellman-Ford over bins, because moving an item to a better rank has a negative cost, which Dijkstra does not allow.
// There is no negative cycle, because the present placement is optimal.
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
