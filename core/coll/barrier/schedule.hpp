// SPDX-License-Identifier: BSD-3-Clause
// The interface between barrier schedules and fabrics.
//
// A barrier algorithm is a schedule: a class with
//     static constexpr std::string_view name, summary;
//     static constexpr int slots(int n);                 number of slots of each member in a team of n
//     template <Fabric F> static Code run(F&, const BarrierCall&);
// and optionally
//     static constexpr int max_members;                 larger teams cannot use it
//     static constexpr bool has_radix = true;            it uses call.radix
// It defines whom a member signals and which signals it awaits. Memory, waiting and transports belong to the fabric. It
// returns the first code that is not ok, at once. The same code runs over mapped memory, over a transport, in the
// explorer and under a cost model.
//
// Three rules keep every schedule correct when calls follow each other without a pause, and on fabrics that reorder
// writes:
//  - slots hold the number of the call (the generation), which only grows; nothing resets a slot;
//  - a wait is for "at least", with a comparison that survives the wrap of the number;
//  - where a sender can be one call ahead of the receiver's wait, slots alternate by the generation's parity: two
//    writes that could overtake each other never use the same slot.
#pragma once

#include <concepts>
#include <cstdint>
#include <span>

#include "npushmem/plugin/status.hpp"

namespace npushmem::barrier {

// The distribution of a team over nodes, as team indices; only `hierarchical` uses it.
struct NodeLayout {
    std::span<const int> node_members;  // the members on this one's node, the leader first
    int index_in_node = 0;              // of this member in `node_members`
    std::span<const int> leaders;       // one member of each node
    int node = 0;                       // index of the node's leader in `leaders`
};

// One call of one member. Indices are those of the team; the fabric maps them to PEs.
struct BarrierCall {
    int n = 1;
    int index = 0;
    int first_slot = 0;                 // the first of this algorithm's slots
    std::uint64_t generation = 0;       // 1 for the first call with this algorithm
    int radix = 2;                      // for schedules with a radix, min_radix to max_radix
    const NodeLayout* nodes = nullptr;  // null: all on one node
};

inline constexpr int min_radix = 2;
inline constexpr int max_radix = 32;

inline constexpr int any_member = -1;

// A wait of a schedule: until `slot` of `member` holds at least the generation.
struct AwaitedSlot {
    int member = 0;  // the slot's owner; polling another member's slot costs a round trip where polls_peers() is false
    int slot = 0;
    int from = any_member;  // the writer
    int round = 0;          // for messages
};

// Returns whether a growing counter with the value `seen` has reached `wanted`. Valid while they are less than 2^63
// apart.
constexpr bool reached(std::uint64_t seen, std::uint64_t wanted) {
    return static_cast<std::int64_t>(seen - wanted) >= 0;
}

// The memory or network between the members, as a schedule uses it.
template <class F>
concept Fabric = requires(F fabric, int member, int slot, std::uint64_t value, std::uint64_t& before,
                          AwaitedSlot awaited) {
    // Writes `value` into a member's slot, after this member's earlier writes (release). It may overtake and be
    // overtaken by other signals to the same member; a write to one's own slot is immediate.
    { fabric.signal(member, slot, value) } -> std::same_as<Code>;
    // Adds to a member's slot; `before` is the previous value. Acquires and releases.
    { fabric.add(member, slot, value, before) } -> std::same_as<Code>;
    // Waits until the slot, this member's or another's, holds at least `value` (acquire).
    { fabric.wait(awaited, value) } -> std::same_as<Code>;
    // Waits until all signals of this member have arrived.
    { fabric.complete() } -> std::same_as<Code>;
    // Whether a wait on another member's slot costs no more than on one's own (mapped memory).
    { fabric.polls_peers() } -> std::same_as<bool>;
};

// Returns the smallest k with 2^k >= n.
constexpr int ceil_log2(int n) {
    int k = 0;
    while ((std::int64_t{1} << k) < n) ++k;
    return k;
}

// Returns the number of slots for one signal from each of up to radix - 1 members in each round, for the radix that
// needs most, so that calls with different radices may alternate. Grows with log n.
constexpr int slots_of_any_radix(int n) {
    int most = 0;
    for (int radix = min_radix; radix <= max_radix; ++radix) {
        int slots = 0;
        for (std::int64_t reach = 1; reach < n; reach *= radix) {
            const auto signals = static_cast<int>((n - 1) / reach);
            slots += signals < radix - 1 ? signals : radix - 1;
        }
        most = slots > most ? slots : most;
    }
    return most;
}

// Returns member `index` + `distance` modulo n; -n < distance < n.
constexpr int wrapped_index(int n, int index, int distance) {
    if (distance < 0) return index >= -distance ? index + distance : index + (n + distance);
    return index >= n - distance ? index - (n - distance) : index + distance;
}

}  // namespace npushmem::barrier
