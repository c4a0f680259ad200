// SPDX-License-Identifier: BSD-3-Clause
// assign() chooses NICs for the PEs of one host. It is a pure function of values.
#pragma once

#include <limits>
#include <span>
#include <string>
#include <vector>

#include "core/base/config.hpp"
#include "npushmem/plugin/status.hpp"
#include "topology/machine/place.hpp"
#include "topology/machine/rail.hpp"
#include "topology/policy/assignment.hpp"
#include "topology/policy/policies.hpp"

namespace npushmem::topology {

struct AssignmentRequest {
    std::vector<DevicePlace> pes;           // of the PEs of this host, by local index
    std::vector<std::uint32_t> pe_numbers;  // their numbers in the job, for the texts; empty: the local index
    std::vector<Rail> rails;                // the ports that the transport offers
    // Per rail: the number of PEs of other jobs on this host that use it now as their first NIC, and whether one uses
    // it as a secondary NIC. Empty: none does.
    std::vector<std::size_t> used_by_others;
    std::vector<bool> secondary_for_others;
    // DevicePlace::number counts the NPUs of the host, including those of other jobs, instead of those of `pes`.
    bool numbers_of_host = false;
    Policy policy = Policy::balanced;
    // The maximum number of NICs that a transport can drive for one PE; at least 1.
    std::size_t max_nics_per_pe = std::numeric_limits<std::size_t>::max();
    // The variables of these names, as the user wrote them; empty when unset.
    bool enable_nic_pe_mapping = false;
    std::string hca_list;
    std::string hca_pe_mapping;
    std::string nic_rails;
};

// Chooses NICs. The first of these that applies decides:
//   hca_list                          restricts the ports (with ^: excludes the named ones) for all rows below
//   enable_nic_pe_mapping + mapping   the user's table
//   enable_nic_pe_mapping             round robin over the list, or over all rails, in order
//   otherwise                         `policy`: round_robin and list by DevicePlace::number, the others by distance,
//                                     between equally near ports by the order of hca_list; `nearest` is NVSHMEM's
// Differences from NVSHMEM's variables of the same names: names match exactly, not as prefixes; the user's order
// counts; a list also restricts the choice by distance; a list together with a mapping, counts that do not sum to the
// host's PEs, and ports that do not exist or are down are errors; if there are more NICs than PEs, a PE uses several of
// its nearest class. The result depends on the order of PEs and rails only through the user's own order (list,
// mapping), between PEs at the same place, and for `nearest` on the order of PEs.
// Without rails every PE gets no NIC, which is not an error. Fails with Code::config when a variable is malformed or
// does not fit the host (the message names variable and entry), and with Code::system when no rail can be used.
Result<Assignment> assign(const Machine& machine, const AssignmentRequest& request);

// The indices to pass to Transport::use_devices of this PE, looked up by name and port because two processes may list
// their devices differently. Fails with Code::system when a device disappeared or is no longer active.
Result<std::vector<std::uint32_t>> device_indices(const PeAssignment& pe, std::span<const npushmem_device> devices);

// The request of a host whose PEs are at `pes` and whose transport offers `rails`; policy and variables come from
// `settings`. Fails with Code::config for an unknown policy.
Result<AssignmentRequest> request_from(const Settings& settings, std::vector<DevicePlace> pes, std::vector<Rail> rails);

// Checks the syntax of the variables that name NICs, on any machine. Fails with Code::config.
Status check_nic_variables(const Settings& settings);

}  // namespace npushmem::topology
