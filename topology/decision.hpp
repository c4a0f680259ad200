// The second half of an assignment: which rails each PE gets, and who decided it. Texts are made of it later.
#pragma once

#include <cstddef>
#include <string>
#include <vector>

#include "npushmem/plugin/status.hpp"
#include "topology/assign.hpp"
#include "topology/candidates.hpp"

namespace npushmem::topology {

struct Decision {
    std::string method;
    std::vector<std::vector<std::size_t>> rails;  // of each PE by local index: indices into AssignmentRequest::rails
    std::vector<std::string> decided_by;          // per PE; empty strings when distance decided
};

// What deciding works on: all refer to the same request.
struct DecisionInput {
    const Machine& machine;
    const AssignmentRequest& request;
    const Candidates& candidates;
    const std::vector<std::size_t>& order;                // of the candidates: the user's, or else the machine's
    const std::vector<std::size_t>& machine_order;        // of the candidates
    const std::vector<std::vector<Distance>>& distances;  // [PE][rail of the request]
};

Result<Decision> decide(const DecisionInput& input);

// Why there is nothing to decide: "this host has no NIC", "no transport in use offers a NIC".
std::string_view why_no_rails(const Machine& machine);

}  // namespace npushmem::topology
