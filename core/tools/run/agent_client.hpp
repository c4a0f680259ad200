// The agent client: the process of the launcher for one of several hosts. It starts the host agent by the remote shell,
// sends the launch request, forwards signals, and exits with the status of the host agent.
#pragma once

#include "core/tools/run/options.hpp"

namespace npushmem::run {

// Started by npushmem-run itself, with --agent-client; NPUSHMEM_PE in `environment` is the host's index. Returns the
// process's exit status.
int run_agent_client(const Options& options, const char* const* environment);

}  // namespace npushmem::run
