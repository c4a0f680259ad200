// The bins of a MinCostFlow: what they carry already, and how much more a fast one may carry than a slow one.
#pragma once

#include <cstddef>
#include <cstdint>
#include <limits>
#include <vector>

namespace npushmem::topology {

// Rates only count relative to each other, whatever their unit.
struct Bins {
    std::vector<std::size_t> load;     // items that are there already, one entry per bin
    std::vector<std::uint64_t> rates;  // 0: unknown, counts as the slowest known one; empty: all are equal
    std::vector<bool> half;            // carries something light besides, half an item; empty: none does
    std::size_t capacity = std::numeric_limits<std::size_t>::max();  // of every bin, `load` included

    static Bins of(std::size_t count) { return {std::vector<std::size_t>(count, 0), {}, {}, no_limit}; }

    static constexpr std::size_t no_limit = std::numeric_limits<std::size_t>::max();
};

// What a bin costs once it carries a number of items: the place of items / rate in the order of all such quotients, so
// that quotients compare exactly and sums stay small whole numbers. Any other numbers in the same order would lead to
// the same placements (see MinCostFlow).
class LoadCosts {
public:
    LoadCosts(const Bins& bins, std::size_t items);

    // `items`: from 1 to what the bin carries plus the number given to the constructor.
    [[nodiscard]] std::int64_t of(std::size_t bin, std::size_t items) const {
        return costs_of_kind_[kind_of_bin_[bin]][items - 1];
    }

private:
    std::vector<std::size_t> kind_of_bin_;  // bins of one rate, with or without half an item, cost the same
    std::vector<std::vector<std::int64_t>> costs_of_kind_;
};

}  // namespace npushmem::topology
