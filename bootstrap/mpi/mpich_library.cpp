// SPDX-License-Identifier: BSD-3-Clause
// Compiled with MPICH's mpi.h, whose predefined handles are numbers; they are the same in all its derivatives.
#include "bootstrap/mpi/calls.hpp"

namespace npushmem::mpi {

Result<std::unique_ptr<MpiLibrary>> make_mpich_library() {
    auto calls = find_calls();
    if (!calls.ok()) return calls.status();
    calls.value().world = MPI_COMM_WORLD;
    calls.value().self = MPI_COMM_SELF;
    calls.value().null = MPI_COMM_NULL;
    calls.value().errors_return = MPI_ERRORS_RETURN;
    calls.value().byte = MPI_BYTE;
    return std::unique_ptr<MpiLibrary>(std::make_unique<LookedUpMpiLibrary>(calls.value()));
}

}  // namespace npushmem::mpi
