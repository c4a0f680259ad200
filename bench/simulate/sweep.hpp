// Many simulations: every algorithm over team sizes, who is fastest where, and a plot.
#pragma once

#include <string>
#include <vector>

#include "bench/simulate/simulation.hpp"

namespace npushmem::simulate {

struct Series {
    barrier::Plan plan;
    std::string name;
    std::vector<Outcome> outcomes;  // by size; those of sizes that it cannot serve have no time (0)
};

struct Sweep {
    std::vector<int> members;
    int per_node = 1;
    std::vector<Series> series;
};

Result<Sweep> sweep(const std::vector<barrier::Plan>& plans, const std::vector<int>& members, int per_node,
                    const Model& model);

// The fastest series for each size; -1 where there is none.
std::vector<int> fastest(const Sweep& sweep);

// Times in microseconds, a column for each algorithm; then messages, lines of memory, and where the fastest changes.
std::string table(const Sweep& sweep);
std::string csv(const Sweep& sweep);
// Time against members, both logarithmic, with a mark at each size from which another one is fastest.
std::string to_svg(const Sweep& sweep, const std::string& title);

}  // namespace npushmem::simulate
