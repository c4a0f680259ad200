// SPDX-License-Identifier: BSD-3-Clause
// Simulates every algorithm over many team sizes, finds the fastest per size, and plots the times.
#pragma once

#include <string>
#include <vector>

#include "bench/simulate/simulation.hpp"

namespace npushmem::simulate {

struct Series {
    barrier::Plan plan;
    std::string name;
    std::vector<Outcome> outcomes;  // by size; time 0 for unsupported sizes
};

struct Sweep {
    std::vector<int> members;
    int per_node = 1;
    std::vector<Series> series;
};

Result<Sweep> sweep(const std::vector<barrier::Plan>& plans, const std::vector<int>& members, int per_node,
                    const Model& model);

// The fastest series for each size; -1 if none supports it.
std::vector<int> fastest(const Sweep& sweep);

// Table: times in microseconds, one column per algorithm; then messages, lines of memory, and the sizes at which the
// fastest changes.
std::string table(const Sweep& sweep);
std::string csv(const Sweep& sweep);
// Plot of time against members, both logarithmic, with a ring at each size from which another algorithm is fastest.
std::string to_svg(const Sweep& sweep, const std::string& title);

}  // namespace npushmem::simulate
