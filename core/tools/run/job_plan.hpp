// Everything that is decided before the first process starts.
#pragma once

#include <csignal>
#include <optional>
#include <string>
#include <vector>

#include "core/tools/run/environment_block.hpp"
#include "core/tools/run/fd.hpp"
#include "core/tools/run/host_pes.hpp"

namespace npushmem::run {

struct PePlan {
    int emulated_host = -1;  // -1: hosts are not emulated
    std::vector<int> cpus;   // numbers of the operating system; empty: not bound
};

struct JobPlan {
    std::string program;                 // path for execve
    std::vector<std::string> arguments;  // argv, beginning with the name that the user gave
    EnvironmentBlock environment;        // what all PEs have in common and is known by now
    std::vector<PePlan> pes;
    Numbering numbering;             // of the PEs that are started here
    std::vector<std::string> hosts;  // not empty: what is started are the agent clients of a job on these hosts
    bool pipe_output = false;
    Fd first_input;  // PE 0's standard input; not open: PE 0 inherits the launcher's
    // Of what is started; none: the launcher's, before it blocks anything.
    std::optional<sigset_t> signal_mask;
};

}  // namespace npushmem::run
