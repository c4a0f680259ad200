// Puts items into bins of their nearest class so evenly, by the bins' rates, that no other way is more even, and among
// the most even ways takes the one of least total rank.
#pragma once

#include <cstdint>
#include <optional>
#include <vector>

#include "topology/bins.hpp"
#include "topology/cost_table.hpp"

namespace npushmem::topology {

// "Most even": the largest load (items / rate) is as small as it can be, then the next largest, and so on. A
// minimum-cost flow with a convex cost per bin: the k-th item of a bin costs more, the larger k / rate is. Items enter
// one at a time along the cheapest path, which may move earlier items on; that keeps the placement optimal after every
// step. The sets of places (bin, k) that can be filled form a matroid, in which the sets of least sum are the same for
// every cost that grows with k / rate; so one sum stands for the largest load, the next largest and all others at once.
// Paths are sought between bins rather than items, so that a step costs about bins^2.
class MinCostFlow {
public:
    // One bin per column of `costs`.
    MinCostFlow(const CostTable& costs, Bins bins);

    // The bin of each item; none for an item all of whose nearest bins are full.
    std::vector<std::optional<std::size_t>> solve();

private:
    // The cheapest way to move one item from a bin to another.
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
