// A file with a machine, seen as a file.
#pragma once

#include <cstdint>
#include <string>

#include "npushmem/plugin/status.hpp"

namespace npushmem::topology {

// Fails with Code::config when there is no such file, or none that can be read.
Status check_topology_file(const std::string& path);

// Equal for files of the same content, wherever they are.
std::uint64_t hash_of_topology_file(const std::string& path);

}  // namespace npushmem::topology
