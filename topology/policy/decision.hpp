// SPDX-License-Identifier: BSD-3-Clause
// The two steps of assign(): usable_rails() filters and orders the offered rails, decide() gives rails to PEs.
#pragma once

#include <cstddef>
#include <string>
#include <vector>

#include "npushmem/plugin/status.hpp"
#include "topology/policy/assign.hpp"

namespace npushmem::topology {

struct Candidates {
    std::vector<std::size_t> rails;  // indices into AssignmentRequest::rails, in the user's order if there is one
    bool in_users_order = false;     // HCA_LIST names them
    std::vector<std::string> notes;  // for people: the ports that were excluded
};

// Applies HCA_LIST and excludes ports that are down. Empty only when the request has no rails; otherwise it fails with
// Code::system, and the message lists the ports and their states.
Result<Candidates> usable_rails(const AssignmentRequest& request);

// The same rails in the machine's order: by PCI address, then name, then port, independent of the input's order.
std::vector<std::size_t> in_machine_order(const Machine& machine, const std::vector<Rail>& rails,
                                          std::vector<std::size_t> indices);

// All PEs in the machine's order of their devices; PEs at one place keep the order of their local index.
std::vector<std::size_t> in_machine_order(const Machine& machine, const std::vector<DevicePlace>& pes);

struct Decision {
    std::string method;
    std::vector<std::vector<std::size_t>> rails;  // of each PE by local index: indices into AssignmentRequest::rails
    std::vector<std::string> decided_by;          // per PE; empty strings when distance decided
};

// All members refer to the same request.
struct DecisionInput {
    const Machine& machine;
    const AssignmentRequest& request;
    const Candidates& candidates;
    const std::vector<std::size_t>& order;                // of the candidates: the user's, or else the machine's
    const std::vector<std::size_t>& machine_order;        // of the candidates
    const std::vector<std::vector<Distance>>& distances;  // [PE][rail of the request]
};

Result<Decision> decide(const DecisionInput& input);

// Explains an empty decision: "this host has no NIC", "no transport in use offers a NIC".
std::string_view why_no_rails(const Machine& machine);

}  // namespace npushmem::topology
