// The first half of an assignment: which of the offered rails may be used at all, and in which order.
#pragma once

#include <cstddef>
#include <string>
#include <vector>

#include "npushmem/plugin/status.hpp"
#include "topology/assign.hpp"

namespace npushmem::topology {

struct Candidates {
    std::vector<std::size_t> rails;  // indices into AssignmentRequest::rails, in the user's order where there is one
    bool in_users_order = false;     // HCA_LIST names them
    std::vector<std::string> notes;  // ports that were left out, for people
};

// Applies HCA_LIST and leaves out ports that are down. Empty only when the request has no rails; otherwise a failure
// with Code::system lists the ports and their states.
Result<Candidates> usable_rails(const AssignmentRequest& request);

// The same rails in the machine's order: by PCI address, then name, then port, whatever the input's order was.
std::vector<std::size_t> in_machine_order(const Machine& machine, const std::vector<Rail>& rails,
                                          std::vector<std::size_t> indices);

// All PEs in the machine's order of their devices; PEs at one place stay in the order of their local index.
std::vector<std::size_t> in_machine_order(const Machine& machine, const std::vector<DevicePlace>& pes);

}  // namespace npushmem::topology
