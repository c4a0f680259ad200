// SPDX-License-Identifier: BSD-3-Clause
// Simulates every algorithm over many team sizes, finds the fastest per size, and plots the times.
#pragma once

#include <cstddef>
#include <functional>
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

// One simulation of a sweep, for a report of the progress.
struct SweepStep {
    std::string algorithm;
    int members = 0;
    std::size_t done = 0;  // simulations before this one
    std::size_t total = 0;
    double share = 0;  // of the members of all simulations, those before this one: simulations of many take longer
};

// Calls `on_step` before each simulation, unless it is empty.
Result<Sweep> sweep(const std::vector<barrier::Plan>& plans, const std::vector<int>& members, int per_node,
                    const Model& model, const std::function<void(const SweepStep&)>& on_step = {});

// The fastest series for each size; -1 if none supports it.
std::vector<int> fastest(const Sweep& sweep);

// Table: times in microseconds, one column per algorithm; then messages, lines of memory, and the sizes at which the
// fastest changes.
std::string table(const Sweep& sweep);
std::string csv(const Sweep& sweep);
// Plot of time against members, both logarithmic, with a mark at each size from which another algorithm is fastest.
std::string to_svg(const Sweep& sweep, const std::string& title);

}  // namespace npushmem::simulate
