// One picture of a job: the host with its NUMA nodes, switches, PEs and NICs, who uses which NIC and how near it is,
// the rails to the other hosts, and the transport map.
#pragma once

#include <string>

#include "core/tools/info/job_view.hpp"

namespace npushmem::info {

// An SVG document.
std::string draw(const JobView& job);

}  // namespace npushmem::info
