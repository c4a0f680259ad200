// SPDX-License-Identifier: BSD-3-Clause
// Reads state and rate of NIC ports from sysfs; hwloc does not report them.
#pragma once

#include <string>

#include "topology/machine/machine.hpp"

namespace npushmem::topology {

// Fills ports, states and rates of `nic` from files below `sysfs` ("/sys"). Values that cannot be read stay unchanged.
void read_port_states(Nic& nic, const std::string& sysfs);

}  // namespace npushmem::topology
