// A subcommand's run as a PE of a job.
#pragma once

#include <functional>

#include "bench/perf/job.hpp"

namespace npushmem::perf {

// Starts the library and calls `body`; what fails is told with the subcommand's name and, once there is one, the PE.
// The exit status of the process.
int run_in_job(const char* subcommand, const std::function<Status(const Job&)>& body);

}  // namespace npushmem::perf
