// SPDX-License-Identifier: BSD-3-Clause
// Jobs on several hosts. The launcher starts one agent client for each host; the agent client starts a host agent there
// by the remote shell and sends it a launch request; the host agent starts the PEs of its host.
#pragma once

#include <array>
#include <csignal>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "core/tools/run/options.hpp"
#include "core/tools/run/placement.hpp"
#include "npushmem/plugin/status.hpp"

namespace npushmem::run {

// The signals that npushmem-run forwards to every PE, on every host.
inline constexpr std::array forwarded_signals{SIGINT, SIGTERM, SIGHUP, SIGQUIT, SIGUSR1, SIGUSR2, SIGTSTP, SIGCONT};

// The launcher sends it to the host agents: end the PEs, whose ends are not failures. Users and batch systems do not
// send it.
inline constexpr int end_signal = SIGPWR;

// The launcher sends it to the host agents: report the ends of all PEs up to now, then send the record
// `exits_flushed`. By default a process ignores this signal.
inline constexpr int flush_exits_signal = SIGURG;

// The signals that the agent client and the host agent handle.
inline constexpr std::array agent_signals{SIGINT,  SIGTERM, SIGHUP,  SIGQUIT,    SIGUSR1,
                                          SIGUSR2, SIGTSTP, SIGCONT, end_signal, flush_exits_signal};

inline sigset_t set_of(std::span<const int> signals) {
    sigset_t set;
    sigemptyset(&set);
    for (const int signal : signals) sigaddset(&set, signal);
    return set;
}

// npushmem-run sends this to the standard input of the host agent: the PEs to start, their options and environment. It
// is not on a command line, which a shell would split and every user of the host could read.
//
//     "npushmem-launch 3 <bytes of the body>\n"   then the body: texts, each ended by a NUL
//     folder, mark of records, first PE, step, count, PEs of the job, binding, tag, verbose, number of variables,
//     variables..., command...
struct LaunchRequest {
    std::string folder;
    std::string record_mark;  // as of Options
    HostPes pes;
    int npes = 0;
    Bind bind = Bind::automatic;
    bool tag_output = false;
    bool verbose = false;
    std::vector<std::string> environment;  // NAME=value
    std::vector<std::string> command;

    [[nodiscard]] std::string encode() const;
    // Returns the length of the body, from the first line.
    static Result<std::size_t> body_bytes(std::string_view first_line);
    static Result<LaunchRequest> decode(std::string_view body);
};

// Runs the host agent (npushmem-run --host-agent). It reads its launch request from standard input, runs the PEs of the
// host as a job of its own, forwards the signals that follow the request, and ends the PEs when standard input ends,
// because the launcher has ended then. Returns the process's exit status.
int run_host_agent(const char* const* environment);

// Runs an agent client, which npushmem-run starts with --agent-client; NPUSHMEM_PE in `environment` is the host's
// index. It starts the host agent by the remote shell, sends the launch request, and forwards signals. Returns the
// status of the host agent.
int run_agent_client(const Options& options, const char* const* environment);

}  // namespace npushmem::run
