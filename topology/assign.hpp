// The choice of NICs for the PEs of one host: a pure function of values.
#pragma once

#include <limits>
#include <span>
#include <string>
#include <vector>

#include "npushmem/plugin/status.hpp"
#include "topology/assignment.hpp"
#include "topology/place.hpp"
#include "topology/policy.hpp"
#include "topology/rail.hpp"

namespace npushmem::topology {

struct AssignmentRequest {
    std::vector<DevicePlace> pes;           // of the PEs of this host, by local index
    std::vector<std::uint32_t> pe_numbers;  // their numbers in the job, for the texts; empty: the local index
    std::vector<Rail> rails;                // what may be used
    // How many PEs of other jobs on this host use each rail now as their first NIC, and whether any uses it as a
    // further one; empty: none.
    std::vector<std::size_t> used_by_others;
    std::vector<bool> secondary_for_others;
    // DevicePlace::number counts the NPUs of the host, among which other jobs have theirs, rather than those of `pes`.
    bool numbers_of_host = false;
    Policy policy = Policy::balanced;
    // How many NICs a transport can drive for one PE; at least 1.
    std::size_t max_nics_per_pe = std::numeric_limits<std::size_t>::max();
    // The variables of these names, as the user wrote them; empty when unset.
    bool enable_nic_pe_mapping = false;
    std::string hca_list;
    std::string hca_pe_mapping;
    std::string nic_rails;
};

// Chooses. Which of the ways decides:
//   hca_list                          leaves only the named ports (or, with ^, all but these), whatever comes next
//   enable_nic_pe_mapping + mapping   the user's table
//   enable_nic_pe_mapping             round robin over the list, or over all rails, in order
//   otherwise                         `policy`: round_robin and list by DevicePlace::number, the others by distance,
//                                     between equally near ports by the order of hca_list; `nearest` is NVSHMEM's
// Where this differs from what NVSHMEM's variables of the same names do: names match exactly, not by their beginning;
// the user's order counts; a list also limits the choice by distance; a list beside a mapping, counts that do not add
// up to the host's PEs, and ports that do not exist or are down are errors; of more NICs than PEs, those in the PEs'
// nearest classes are used. The result depends on the order of PEs and rails only where the user's own order counts
// (list, mapping), between PEs at one and the same place, and for `nearest` on that of the PEs. Without rails every PE
// gets none, which is no failure. Fails with Code::config when a variable is malformed or does not fit the host (the
// message names variable and entry), and with Code::system when rails exist and none of them can be used.
Result<Assignment> assign(const Machine& machine, const AssignmentRequest& request);

// The indices to pass to Transport::use_devices of this PE, found by name and port because two processes may list their
// devices differently. Fails with Code::system when one has gone or is no longer active.
Result<std::vector<std::uint32_t>> device_indices(const PeAssignment& pe, std::span<const npushmem_device> devices);

}  // namespace npushmem::topology
