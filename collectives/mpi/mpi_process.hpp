// SPDX-License-Identifier: BSD-3-Clause
// The MPI that runs in this process, as a library of collectives.
#pragma once

#include <memory>
#include <string>

#include "npushmem/plugin/collectives.hpp"

namespace npushmem::mpi {

// The number of PEs of the job, and whether one thread makes all calls.
struct JobShape {
    int npes;
    bool one_thread;
};

// Code::state if MPI does not run in this process, Code::unsupported if it cannot serve the job.
Result<std::unique_ptr<Collectives>> collectives_of_process(const JobShape& job);

// Each is defined in a source that is compiled with that library's header.
Result<std::unique_ptr<Collectives>> make_openmpi_collectives(const JobShape& job, std::string description);
Result<std::unique_ptr<Collectives>> make_mpich_collectives(const JobShape& job, std::string description);

}  // namespace npushmem::mpi
