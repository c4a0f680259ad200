// SPDX-License-Identifier: BSD-3-Clause
// The NIC policies. decision.cpp applies one unless the user's table (NPUSHMEM_HCA_PE_MAPPING) decides.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <string_view>
#include <vector>

#include "npushmem/plugin/status.hpp"
#include "topology/machine/distance.hpp"
#include "topology/policy/min_cost_flow.hpp"

namespace npushmem::topology {

enum class Policy : std::uint8_t {
    balanced,     // a NIC of each PE's nearest class; within it the most even load by rate
    nearest,      // NVSHMEM's two greedy passes, for comparison
    exclusive,    // a NIC belongs to one device; an error when there are too few
    round_robin,  // in turn by number, at any distance
    list,         // PE i gets the i-th port of NPUSHMEM_HCA_LIST; an error when the list is too short
};

// "balanced", "nearest", "exclusive", "round_robin", "list".
std::string_view name_of(Policy policy);
// Fails with Code::config; the message lists the names.
Result<Policy> parse_policy(std::string_view text);

// The columns chosen for each row of a cost table, best first. Rows are PEs, columns rails.
using Choice = std::vector<std::vector<std::size_t>>;

// The default policy: nearest class first, then the most even load, then the best paths. `rails` holds the present load
// and the rate of each rail. Every PE gets one rail of its nearest class. Each unused rail then goes to a PE whose
// nearest class contains it, until no such rail is left or every such PE has max_per_pe. A rail that is in no PE's
// nearest class, such as a NIC for storage, stays unused.
Choice choose_balanced(const CostTable& costs, std::size_t max_per_pe, const Bins& rails);

// The second half alone: adds unused rails of the PEs' nearest classes to a choice of one rail per PE, and orders them
// behind it by distance.
void add_unused(const CostTable& costs, std::size_t max_per_pe, const Bins& rails, Choice& choice);

// The rails without load.
std::vector<std::size_t> free_rails(const Bins& rails);

// A NIC belongs to one device. `device_of` gives the device of each PE; PEs with equal numbers have one device. Devices
// get different rails, all free in `rails`, with as few far ones as possible; PEs of one device share its rails.
// Remaining rails are distributed as by choose_balanced. Empty when there are more devices than free rails.
Choice choose_exclusive(const CostTable& costs, std::span<const std::uint32_t> device_of, std::size_t max_per_pe,
                        const Bins& rails);

// NVSHMEM's two greedy passes, for users who compare with it. Rows are PEs in the order of their ranks.
// A PE has max(1, rails / PEs) places, at most max_per_pe. Classes with equal bandwidth are equally near: PIX and PXB.
// First pass: a PE takes the rails as near as its nearest one, the better class first, until its places are full; other
// places stay empty. Second pass: for each place of each PE, tries the rails in the same order; the place moves to an
// equally near rail that has at least two users fewer than the present one. A PE may get one rail in two places; the
// result lists it once. The loads of other jobs do not count.
Choice choose_nearest(const CostTable& costs, std::size_t max_per_pe);

}  // namespace npushmem::topology
