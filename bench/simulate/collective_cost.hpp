// SPDX-License-Identifier: BSD-3-Clause
// The time of one collective call of up to a million PEs under the LogGP model. npushmem's own collectives
// (core/coll/collectives.cpp) run for members of the team, which record what they send, read and wait for.
//
// Up to 8,192 members on up to 128 hosts synchronise by messages with signals: host_replay.hpp. Other members
// synchronise by barriers, whose time is that of the event simulation; so do the former where a method has no such
// messages. The rest of this comment is about calls with barriers. Some members record.
//
// A phase takes as long as its slowest member, or as the busiest member needs to receive and to serve what all others
// send to it and read from it. Members that at least two recorded ones address count as addressed by all in the same
// way; the others have the average load. Each PE has its own share of the network. Combining operands takes no time.
#pragma once

#include <cstdint>

#include "bench/simulate/simulation.hpp"
#include "core/coll/methods.hpp"

namespace npushmem::simulate {

struct CollectiveCall {
    std::uint32_t collective = 0;  // NPUSHMEM_COLL_BROADCAST to NPUSHMEM_COLL_REDUCESCATTER
    std::uint64_t bytes = 0;       // of each member; of reductions a multiple of 4: sums of floats
    coll::Method method = coll::Method::automatic;
};

struct CollectiveCost {
    double nanoseconds = 0;
    double barrier_nanoseconds = 0;  // of these, in barriers
    int barriers = 0;
    double messages = 0;       // between nodes, of all members; without those of barriers
    double network_bytes = 0;  // the same
};

// For teams of at least two nodes, as memory that members map takes other paths in one. Code::argument for other teams
// and collectives; Code::unsupported for a method that does not serve the team.
Result<CollectiveCost> cost_of(const CollectiveCall& call, const Team& team, const Model& model);

}  // namespace npushmem::simulate
