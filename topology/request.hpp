// From the user's settings to a request for an assignment.
#pragma once

#include <vector>

#include "core/base/config.hpp"
#include "npushmem/plugin/status.hpp"
#include "topology/assign.hpp"

namespace npushmem::topology {

// The request of a host whose PEs sit at `pes` and whose transport offers `rails`; policy and variables come from
// `settings`. Fails with Code::config on an unknown policy.
Result<AssignmentRequest> request_from(const Settings& settings, std::vector<DevicePlace> pes, std::vector<Rail> rails);

// Whether the variables that name NICs can be read at all, whatever the machine has. Fails with Code::config.
Status check_nic_variables(const Settings& settings);

}  // namespace npushmem::topology
