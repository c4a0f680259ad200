// The policy for who wants no sharing: a NIC belongs to one device.
#pragma once

#include <cstdint>
#include <span>

#include "topology/bins.hpp"
#include "topology/cost_table.hpp"

namespace npushmem::topology {

// The rails that nothing uses yet.
std::vector<std::size_t> free_rails(const Bins& rails);

// Rows are PEs, columns rails; `device_of` gives the device of each PE (equal numbers: one device). Devices get
// different rails, none that `rails` says is in use, with as few far ones as possible; PEs of one device share its
// rails. Left-over rails are shared out as by choose_balanced. Empty when there are more devices than free rails.
Choice choose_exclusive(const CostTable& costs, std::span<const std::uint32_t> device_of, std::size_t max_per_pe,
                        const Bins& rails);

}  // namespace npushmem::topology
