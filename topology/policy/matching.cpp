// SPDX-License-Identifier: BSD-3-Clause
#include "topology/policy/matching.hpp"

#include <array>
#include <cstdint>
#include <limits>

namespace npushmem::topology {
namespace {

// The number of rows in each class, the farthest first, then the rank: compared from the left, added element by
// element. Such vectors form an ordered group, which the Hungarian method requires of a cost.
struct ClassCost {
    std::array<std::int64_t, distance_class_count + 1> places{};

    static ClassCost of(const CostEntry& entry) {
        ClassCost out;
        out.places[distance_class_count - 1 - static_cast<std::size_t>(entry.distance_class)] = 1;
        out.places.back() = static_cast<std::int64_t>(entry.rank);
        return out;
    }
    static ClassCost infinite() {
        ClassCost out;
        out.places.front() = std::numeric_limits<std::int32_t>::max();
        return out;
    }
    ClassCost& operator+=(const ClassCost& other) {
        for (std::size_t i = 0; i < places.size(); ++i) places[i] += other.places[i];
        return *this;
    }
    ClassCost& operator-=(const ClassCost& other) {
        for (std::size_t i = 0; i < places.size(); ++i) places[i] -= other.places[i];
        return *this;
    }
    friend bool operator<(const ClassCost& a, const ClassCost& b) { return a.places < b.places; }
};

// Rows and columns count from 1 here; column 0 represents the row that is being added.
class Hungarian {
public:
    explicit Hungarian(const CostTable& costs)
        : costs_(costs),
          columns_(costs.empty() ? 0 : costs.front().size()),
          row_price_(costs.size() + 1),
          column_price_(columns_ + 1),
          row_of_(columns_ + 1, 0),
          before_(columns_ + 1, 0) {}

    std::vector<std::size_t> solve() {
        for (std::size_t row = 1; row <= costs_.size(); ++row) add(row);
        std::vector<std::size_t> column_of(costs_.size());
        for (std::size_t column = 1; column <= columns_; ++column) {
            if (row_of_[column] != 0) column_of[row_of_[column] - 1] = column - 1;
        }
        return column_of;
    }

private:
    void add(std::size_t row) {
        row_of_[0] = row;
        lowest_.assign(columns_ + 1, ClassCost::infinite());
        visited_.assign(columns_ + 1, false);
        std::size_t column = 0;
        while (row_of_[column] != 0) column = next(column);
        for (; column != 0; column = before_[column]) row_of_[column] = row_of_[before_[column]];
    }

    // Moves from `column` to the cheapest column to reach, and lowers prices so that the path to it costs nothing.
    std::size_t next(std::size_t column) {
        visited_[column] = true;
        std::size_t best = 0;
        for (std::size_t other = 1; other <= columns_; ++other) {
            if (visited_[other]) continue;
            relax(column, other);
            if (best == 0 || lowest_[other] < lowest_[best]) best = other;
        }
        update_prices(lowest_[best]);
        return best;
    }

    void relax(std::size_t from, std::size_t to) {
        const std::size_t row = row_of_[from];
        auto cost = ClassCost::of(costs_[row - 1][to - 1]);
        cost -= row_price_[row];
        cost -= column_price_[to];
        if (!(cost < lowest_[to])) return;
        lowest_[to] = cost;
        before_[to] = from;
    }

    void update_prices(ClassCost price) {
        for (std::size_t column = 0; column <= columns_; ++column) {
            if (visited_[column]) {
                row_price_[row_of_[column]] += price;
                column_price_[column] -= price;
            } else {
                lowest_[column] -= price;
            }
        }
    }

    const CostTable& costs_;
    std::size_t columns_;
    std::vector<ClassCost> row_price_;
    std::vector<ClassCost> column_price_;
    std::vector<std::size_t> row_of_;
    std::vector<std::size_t> before_;
    std::vector<ClassCost> lowest_;
    std::vector<bool> visited_;
};

}  // namespace

std::vector<std::size_t> cheapest_matching(const CostTable& costs) { return Hungarian(costs).solve(); }

}  // namespace npushmem::topology
