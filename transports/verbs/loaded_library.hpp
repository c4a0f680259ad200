// libibverbs as this machine has it.
#pragma once

#include "npushmem/plugin/status.hpp"
#include "transports/verbs/verbs_library.hpp"

namespace npushmem::verbs {

// The error says which file, or which function of it, is missing, and what to install.
Result<Library> load_library(const char* file = "libibverbs.so.1");

}  // namespace npushmem::verbs
