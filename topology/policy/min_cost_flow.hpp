// SPDX-License-Identifier: BSD-3-Clause
// Places items in bins of their nearest class with the most even load by rate, and among the most even placements with
// the least total rank.
#pragma once

#include <cstddef>
#include <cstdint>
#include <limits>
#include <optional>
#include <vector>

#include "topology/machine/distance.hpp"

namespace npushmem::topology {

// Only ratios of rates matter, in any unit.
struct Bins {
    std::vector<std::size_t> load;     // present items, one entry per bin
    std::vector<std::uint64_t> rates;  // 0: unknown, counts as the slowest known one; empty: all are equal
    std::vector<bool> half;            // has half an item more; empty: none has
    std::size_t capacity = std::numeric_limits<std::size_t>::max();  // of every bin, `load` included

    static Bins of(std::size_t count) { return {std::vector<std::size_t>(count, 0), {}, {}, no_limit}; }

    static constexpr std::size_t no_limit = std::numeric_limits<std::size_t>::max();
};

// The cost of a bin with a number of items: the position of items / rate in the order of all such quotients. So
// quotients compare exactly and sums stay small whole numbers. Any other numbers in the same order yield the same
// placements (see MinCostFlow).
class LoadCosts {
public:
    LoadCosts(const Bins& bins, std::size_t items);

    // `items`: from 1 to the bin's present load plus the number given to the constructor.
    [[nodiscard]] std::int64_t of(std::size_t bin, std::size_t items) const {
        return costs_of_kind_[kind_of_bin_[bin]][items - 1];
    }

private:
    std::vector<std::size_t> kind_of_bin_;  // bins of one rate, with or without half an item, cost the same
    std::vector<std::vector<std::int64_t>> costs_of_kind_;
};

// "Most even" minimises the largest load (items / rate), then the next largest, and so on. The algorithm is a
// minimum-cost flow with a convex cost per bin: the k-th item of a bin costs more, the larger k / rate is. Items enter
// one at a time along the cheapest path, which may move earlier items; the placement stays optimal after every step.
// The sets of places (bin, k) that can be filled form a matroid, in which the sets of least sum are the same for every
// cost that grows with k / rate; so one sum represents the largest load, the next largest and all others at once.
// Paths run between bins rather than items, so a step costs about bins^2.
class MinCostFlow {
public:
    // One bin per column of `costs`.
    MinCostFlow(const CostTable& costs, Bins bins);

    // The bin of each item; none for an item whose nearest bins are all full.
    std::vector<std::optional<std::size_t>> solve();

private:
    // The cheapest move of one item from a bin to another.
    struct Move {
        std::int64_t cost = 0;
        std::size_t item = 0;
        bool possible = false;
    };
    // The cheapest path that ends in a bin: its cost, the bin before, and the item that moves in.
    struct Step {
        std::int64_t cost = 0;
        std::optional<std::size_t> from;
        std::size_t item = 0;
        bool reached = false;
    };

    void insert(std::size_t item);
    std::vector<Step> cheapest_paths(std::size_t item) const;
    bool relax(std::vector<Step>& steps, std::size_t from) const;
    std::optional<std::size_t> best_end(const std::vector<Step>& steps) const;
    void follow(const std::vector<Step>& steps, std::size_t end);
    void refresh_moves(std::size_t bin);
    bool allowed(std::size_t item, std::size_t bin) const;
    std::int64_t rank(std::size_t item, std::size_t bin) const;

    const CostTable& costs_;
    std::size_t bins_;
    std::size_t capacity_;
    LoadCosts load_costs_;
    std::int64_t load_unit_;  // one step in the cost of loads outweighs every sum of ranks
    std::vector<DistanceClass> nearest_;
    std::vector<std::size_t> load_;
    std::vector<std::optional<std::size_t>> bin_of_;
    std::vector<std::vector<Move>> moves_;  // [from][to]
};

}  // namespace npushmem::topology
