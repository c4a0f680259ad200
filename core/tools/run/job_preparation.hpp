// SPDX-License-Identifier: BSD-3-Clause
// From the command line to a plan of the job. Every error that can be found before a process starts is reported here.
#pragma once

#include <csignal>
#include <optional>
#include <string>
#include <string_view>
#include <variant>
#include <vector>

#include "core/base/config_file.hpp"
#include "core/base/poller.hpp"
#include "core/tools/run/options.hpp"
#include "core/tools/run/placement.hpp"

namespace npushmem::run {

// The environment of a process to start: a list of NAME=value strings. A later setting replaces an earlier one.
class EnvironmentBlock {
public:
    // Copies a null-terminated array such as main's third parameter; null is an empty environment.
    static EnvironmentBlock copy_of(const char* const* environment);

    void set(std::string_view name, std::string_view value);
    // Null if the variable is not set; the pointer holds until the next `set`.
    [[nodiscard]] const char* value(std::string_view name) const;
    // Does nothing if the variable is set here or in the configuration file.
    void set_default(std::string_view name, std::string_view value);
    // `value` and `set_default` count these variables as set; the processes read the file themselves.
    void use_config_file(FileValues values) { file_values_ = std::move(values); }

    // For execve: null-terminated, valid until the next `set`.
    [[nodiscard]] std::vector<char*> pointers();

private:
    [[nodiscard]] std::vector<std::string>::const_iterator find(std::string_view name) const;

    std::vector<std::string> entries_;
    FileValues file_values_;
};

struct ProgramError {
    int status = 0;  // exit_not_found or exit_not_executable
    std::string message;
};

// Finds the program as a shell does. A name with a slash is a path; any other name is searched for in the
// colon-separated `search_path`.
std::variant<std::string, ProgramError> find_program(const std::string& name, const std::string& search_path);

struct PePlan {
    int emulated_host = -1;  // -1: hosts are not emulated
    std::vector<int> cpus;   // the operating system's numbers; empty: not bound
};

// Everything that is decided before the first process starts.
struct JobPlan {
    std::string program;                 // path for execve
    std::vector<std::string> arguments;  // argv, beginning with the name that the user gave
    EnvironmentBlock environment;        // the part that all PEs share
    std::vector<PePlan> pes;
    int job_pes = 0;                 // on all hosts
    Numbering numbering;             // of the PEs that are started here
    std::vector<std::string> hosts;  // not empty: the supervisor starts agent clients, one for each of these hosts
    bool pipe_output = false;
    FileDescriptor first_input;  // PE 0's standard input; not open: PE 0 inherits the launcher's
    // Signal mask of the processes that are started; none: the launcher's mask before it blocks any signal.
    std::optional<sigset_t> signal_mask;
};

// Finds the program, assigns PEs to hosts and CPUs, and builds the environment that they share. `environment`: main's.
// The launcher sets the plan's input and signal mask.
std::variant<JobPlan, EarlyExit> prepare_job(const Options& options, const char* const* environment);

// Do PEs use the unique id that the launcher creates? Yes, unless the user chose a bootstrap other than uid, by name or
// by path.
bool needs_unique_id(const EnvironmentBlock& environment);

}  // namespace npushmem::run
