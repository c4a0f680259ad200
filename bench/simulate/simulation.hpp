// SPDX-License-Identifier: BSD-3-Clause
// Runs the real barrier schedules of up to a million members under a cost model, event by event, in one thread.
#pragma once

#include <cstdint>

#include "bench/simulate/model.hpp"
#include "core/coll/barrier/algorithms.hpp"

namespace npushmem::simulate {

struct Team {
    int members = 2;
    int per_node = 1;  // the last node may have fewer

    [[nodiscard]] int nodes() const { return (members + per_node - 1) / per_node; }
};

// Result of one call that all members enter at the same time.
struct Outcome {
    double nanoseconds = 0;      // until the last member leaves
    std::uint64_t messages = 0;  // to other members, sum over all members
    std::uint64_t network = 0;   // of these, to other nodes
    std::uint64_t turns = 0;     // of shared cores
    int slots = 0;               // 64-byte lines of each member
};

// Code::range if the algorithm does not support this number of members.
Result<Outcome> simulate(const barrier::Plan& plan, const Team& team, const Model& model);

}  // namespace npushmem::simulate
