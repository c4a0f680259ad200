// Texts for people: `npushmem-info -t` and the report at start-up.
#pragma once

#include <limits>
#include <string>

#include "topology/assignment.hpp"
#include "topology/machine.hpp"

namespace npushmem::topology {

// Several lines, each ended by a newline: processors, then the PCI forest with what hangs in it, then notes.
std::string describe(const Machine& machine);

// A table of PEs and NICs with the reasons, one of where their devices sit, then notes; without NICs, a sentence that
// says why. PEs with equal lines share one: "0-7  eth0:1". Shows the first `max_pes` PEs and says how many more there
// are.
std::string describe(const Assignment& assignment, std::size_t max_pes = std::numeric_limits<std::size_t>::max());

// "200 Gb/s", "2.5 Gb/s"; empty for 0.
std::string rate_text(std::uint64_t bits_per_second);

}  // namespace npushmem::topology
