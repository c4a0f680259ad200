// From the command line to a plan of the job. Every error that can be found before a process starts is reported here.
#pragma once

#include <csignal>
#include <optional>
#include <string>
#include <string_view>
#include <variant>
#include <vector>

#include "core/tools/run/fd.hpp"
#include "core/tools/run/options.hpp"
#include "core/tools/run/placement.hpp"

namespace npushmem::run {

// The environment of a process to be started: a list of NAME=value strings in which a later setting replaces an
// earlier.
class EnvironmentBlock {
public:
    // A copy of a null-terminated array such as main's third parameter; null is an empty environment.
    static EnvironmentBlock copy_of(const char* const* environment);

    void set(std::string_view name, std::string_view value);
    // Null if the variable is not set; the pointer holds until the next `set`.
    [[nodiscard]] const char* value(std::string_view name) const;
    void set_default(std::string_view name, std::string_view value);

    // For execve: null-terminated, valid until the next `set`.
    [[nodiscard]] std::vector<char*> pointers();

private:
    [[nodiscard]] std::vector<std::string>::const_iterator find(std::string_view name) const;

    std::vector<std::string> entries_;
};

// Finds the program to start as a shell would.
struct ProgramError {
    int status = 0;  // exit_not_found or exit_not_executable
    std::string message;
};

// A name with a slash is a path; any other is looked for in the colon-separated `search_path`.
std::variant<std::string, ProgramError> find_program(const std::string& name, const std::string& search_path);

// Everything that is decided before the first process starts.
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

// From the command line to a plan: everything that can go wrong before a process is started goes wrong here.

// Finds the program, deals PEs to hosts and CPUs, and builds the environment that they share. `environment`: main's.
// The plan's input and signal mask are left to the launcher.
std::variant<JobPlan, EarlyExit> prepare_job(const Options& options, const char* const* environment);

// Whether PEs use the unique id that the launcher makes: the user chose no bootstrap other than uid, by name or by
// path.
bool needs_unique_id(const EnvironmentBlock& environment);

}  // namespace npushmem::run
