// What the launcher's own exit status means; a failed PE's status is passed on instead.
#pragma once

namespace npushmem::run {

constexpr int exit_usage = 2;              // a mistake on the command line
constexpr int exit_calls_failed = 123;     // of a host agent: calls failed and nothing else
constexpr int exit_timeout = 124;          // --timeout has passed
constexpr int exit_launcher_failed = 125;  // the launcher itself could not do its work
constexpr int exit_not_executable = 126;   // the program is there but cannot be run
constexpr int exit_not_found = 127;        // there is no such program
constexpr int exit_signal_base = 128;      // plus the signal's number

}  // namespace npushmem::run
