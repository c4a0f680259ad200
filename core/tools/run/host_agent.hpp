// The host agent (npushmem-run --host-agent): started by the remote shell on each host of a job. It reads
// its launch request from standard input, runs the PEs of the host as a job of its own, forwards the signals that
// follow the request, and ends the PEs when standard input ends, since the launcher is gone then.
#pragma once

namespace npushmem::run {

int run_host_agent(const char* const* environment);

}  // namespace npushmem::run
