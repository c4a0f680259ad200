// State and rate of NIC ports, which hwloc leaves out, from the kernel's tables.
#pragma once

#include <string>

#include "topology/nic.hpp"

namespace npushmem::topology {

// Fills ports, states and rates of `nic` from below `sysfs` ("/sys"). What cannot be read stays as it is.
void read_port_states(Nic& nic, const std::string& sysfs);

}  // namespace npushmem::topology
