// The signals that npushmem-run passes on to every PE, on whichever host.
#pragma once

#include <array>
#include <csignal>
#include <span>

namespace npushmem::run {

inline constexpr std::array forwarded_signals{SIGINT, SIGTERM, SIGHUP, SIGQUIT, SIGUSR1, SIGUSR2, SIGTSTP, SIGCONT};

// From the launcher of a job on several hosts to the host agent on each: end the PEs, whose ends are no failures. Users
// and batch systems do not send it.
inline constexpr int end_signal = SIGPWR;

// From the launcher of a job on several hosts to the host agent on each: report the ends of all PEs up to now, then
// send the record `exits_flushed`. By default a process ignores this signal.
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

}  // namespace npushmem::run
