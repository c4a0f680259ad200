// The signals that npushmem-run passes on to every PE, on whichever host.
#pragma once

#include <array>
#include <csignal>
#include <span>

namespace npushmem::run {

inline constexpr std::array forwarded_signals{SIGINT, SIGTERM, SIGHUP, SIGQUIT, SIGUSR1, SIGUSR2, SIGTSTP, SIGCONT};

// From the launcher of a job on several hosts to the part on each: end the PEs, whose ends are no failures. Users and
// batch systems do not send it.
inline constexpr int end_signal = SIGPWR;

// The signals that carrier and part take.
inline constexpr std::array part_signals{SIGINT,  SIGTERM, SIGHUP,  SIGQUIT,   SIGUSR1,
                                         SIGUSR2, SIGTSTP, SIGCONT, end_signal};

inline sigset_t set_of(std::span<const int> signals) {
    sigset_t set;
    sigemptyset(&set);
    for (const int signal : signals) sigaddset(&set, signal);
    return set;
}

}  // namespace npushmem::run
