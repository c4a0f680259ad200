// What tells one process from a later one with the same number.
#pragma once

#include <cstdint>
#include <string_view>

#include "npushmem/plugin/status.hpp"

namespace npushmem::shared_memory {

// When the process started, in clock ticks since the machine did. Code::peer_dead when there is no such process.
Result<std::uint64_t> start_time_of(int process);

// Field 22 of a /proc/<pid>/stat line; 0 when the line is not one. The second field, a name in parentheses, may itself
// contain blanks and parentheses.
std::uint64_t start_time_in(std::string_view stat_line);

}  // namespace npushmem::shared_memory
