// SPDX-License-Identifier: BSD-3-Clause
// The time of the exchange of data at the start of a job of up to a million PEs under the LogGP model: the join
// (bootstrap/rendezvous/job_join.cpp), the connections of the tree (tree_place), and the collectives of the bootstrap
// in start_exchanges.hpp, each up the tree and down in pieces of 64 KiB, or through the shared memory of one host.
//
// A process sends and receives one message after another. A message of b bytes occupies its sender and its receiver for
// max(overhead, gap) + b * per_byte each, and travels for `latency` between them. All PEs begin at the same time, all
// frames go over TCP, also inside a host, and no connection is refused or repeated.
//
// Not included: execution of the programs, the dynamic linker, page faults, wake-ups of processes that sleep, the
// discovery of NICs, the set-up of transports, loops of a PE over the records of all PEs, and the world's first barrier
// (simulate-barrier).
#pragma once

#include "bench/simulate/simulation.hpp"

namespace npushmem::simulate {

struct StartCost {
    double nanoseconds = 0;
    double join = 0;            // of these, until every PE knows its parent; 0 on one host
    double connect = 0;         // until all are connected in the tree; 0 on one host
    double exchange = 0;        // in collectives
    double messages = 0;        // frames over TCP, of all PEs
    double received_bytes = 0;  // in collectives, by the PE that receives most
    double memory_bytes = 0;    // of each PE, until its start ends, for what it keeps of all
};

// Code::argument unless the team has at least 2 and at most rendezvous::limits::ranks members, and PEs on each node.
Result<StartCost> start_cost(const Team& team, const Model& model);

}  // namespace npushmem::simulate
