// Many PE numbers in few characters.
#pragma once

#include <cstdint>
#include <span>
#include <string>

namespace npushmem::topology {

// Of numbers in rising order: "3", "0-7", "0,8..56" (every eighth), "0-3,8,10" ; what goes beyond some pieces is
// counted: "0,2,5,7,11,12 +9 more".
std::string pe_ranges(std::span<const std::uint32_t> pes);

}  // namespace npushmem::topology
