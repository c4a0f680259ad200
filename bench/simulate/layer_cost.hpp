// SPDX-License-Identifier: BSD-3-Clause
// The time of the dispatch and the combine of one MoE layer with one row per (token, rank), for up to a million PEs,
// under the LogGP model. One PE runs the host's part of the real schedule (core/moe/dispatch/dispatch_launches.cpp and
// core/moe/direct/combine_sender.cpp) over memory that records each put and signal: records, rows, slots and choices,
// the relays of row_fan_out.hpp, and the signals to every PE.
//
// The routing is uniform: the choices of a token are different experts, drawn at random. All PEs call at the same time
// and are alike: a PE receives from each PE as much as it sends there, so it has received everything when its own puts
// are complete and the last signal of another PE has arrived. A put takes its sender max(overhead, gap) + bytes *
// per_byte. Puts to PEs of the node go one after another with the others, although on a device kernels do them. Each PE
// has its own share of the network.
//
// Not included: launches of kernels, the sort of the choices, loops over the PEs that send nothing, experts, sums,
// quantization, and the creation of the layer, which reads one record and one bit for each rank from every rank.
#pragma once

#include <cstdint>

#include "bench/simulate/simulation.hpp"

namespace npushmem::simulate {

struct LayerCall {
    std::int32_t experts_per_pe = 1;
    std::int32_t top_k = 8;
    std::int32_t tokens = 128;            // of each PE
    std::uint64_t dispatched_row = 7168;  // bytes: 7168 elements of 8 bits
    std::uint64_t returned_row = 2 * 7168;
    bool fixed_slots = false;  // CombineConfig::capacity
    std::uint64_t seed = 1;    // of the choices
};

// Of one PE; all end at the same time. Times in nanoseconds.
struct LayerCost {
    double nanoseconds = 0;
    // The parts, in order.
    double counts = 0;   // until the record of every PE has arrived; with fixed slots the records travel with the rows
    double tables = 0;   // to read the counts of all PEs for all PEs, once
    double rows = 0;     // until the rows of every PE have arrived
    double relays = 0;   // until the rows are copied from the PEs of the node that got them
    double combine = 0;  // until the returned rows of every PE have arrived
    // To other PEs.
    std::uint64_t messages = 0;
    std::uint64_t messages_to_all = 0;  // of these, those that every PE gets, with rows or without
    std::uint64_t bytes = 0;
    std::uint64_t record_bytes = 0;  // of these, in records
    std::uint64_t memory_bytes = 0;  // symmetric memory of dispatch and combine; packed, with room for the rows alone
};

// Code::argument for teams of less than two members, and for choices that a layer does not have.
Result<LayerCost> layer_cost(const LayerCall& call, const Team& team, const Model& model);

}  // namespace npushmem::simulate
