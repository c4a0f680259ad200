// SPDX-License-Identifier: BSD-3-Clause
// Texts for people: `npushmem-info -t` and the report at start-up.
#pragma once

#include <cstddef>
#include <cstdint>
#include <limits>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "topology/machine/machine.hpp"
#include "topology/policy/assignment.hpp"
#include "topology/policy/nic_claim.hpp"

namespace npushmem::topology {

// Text of reports: tables, counts and lists of PEs.

// Renders rows of cells with aligned columns. Every line begins with `indent` blanks; columns are two blanks apart; no
// line ends in blanks.
std::string render_table(const std::vector<std::vector<std::string>>& rows, std::size_t indent);

// "1 core", "3 cores".
std::string counted(std::size_t count, std::string_view one);

// A short list of PE numbers, which are in rising order: "3", "0-7", "0,8..56" (every eighth), "0-3,8,10". After six
// pieces it counts the rest: "0,2,5,7,11,12 +9 more".
std::string pe_ranges(std::span<const std::uint32_t> pes);

// Several lines, each with a newline: processors, then the PCI forest with its devices and NICs, then notes.
std::string describe(const Machine& machine);

// A table of PEs and NICs with reasons, a table of the places of their devices, then notes; without NICs, a sentence
// with the reason. PEs with equal lines share one: "0-7  eth0:1". Shows the first `max_pes` PEs and the number of the
// others.
std::string describe(const Assignment& assignment, std::size_t max_pes = std::numeric_limits<std::size_t>::max());

// A table of the claims on the machine with this key, grouped by job; one sentence when there are none. Claims on other
// machines (topology files, other emulated hosts) follow in a separate table: different NICs may have the same names.
std::string describe(std::span<const NicClaim> claims, std::uint64_t machine);

// "200 Gb/s", "2.5 Gb/s"; empty for 0.
std::string rate_text(std::uint64_t bits_per_second);

}  // namespace npushmem::topology
