// From the command line to a plan: everything that can go wrong before a process is started goes wrong here.
#pragma once

#include <variant>

#include "core/tools/run/job_plan.hpp"
#include "core/tools/run/options.hpp"

namespace npushmem::run {

// Finds the program, deals PEs to hosts and CPUs, and builds the environment that they share. `environment`: main's.
// The plan's input and signal mask are left to the launcher.
std::variant<JobPlan, EarlyExit> prepare_job(const Options& options, const char* const* environment);

// Whether PEs use the unique id that the launcher makes: the user chose no bootstrap other than uid, by name or by
// path.
bool needs_unique_id(const EnvironmentBlock& environment);

}  // namespace npushmem::run
