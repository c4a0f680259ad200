// The process that stands for one host in a job on several: it reaches the host by the remote shell, hands the order
// over, passes signals on, and ends as the part there ends.
#pragma once

#include "core/tools/run/options.hpp"

namespace npushmem::run {

// Started by npushmem-run itself, with --carry; NPUSHMEM_PE in `environment` is the host's index. Returns the process's
// exit status.
int run_carrier(const Options& options, const char* const* environment);

}  // namespace npushmem::run
