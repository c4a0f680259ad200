// SPDX-License-Identifier: BSD-3-Clause
// Compiled with Open MPI's mpi.h, whose predefined handles are addresses of objects in the library.
#include "bootstrap/mpi/calls.hpp"

namespace npushmem::mpi {

Result<std::unique_ptr<MpiLibrary>> make_openmpi_library() {
    auto calls = find_calls();
    if (!calls.ok()) return calls.status();
    Calls& known = calls.value();
    if (!look_up("ompi_mpi_comm_world", known.world) || !look_up("ompi_mpi_comm_self", known.self) ||
        !look_up("ompi_mpi_comm_null", known.null) || !look_up("ompi_mpi_errors_return", known.errors_return) ||
        !look_up("ompi_mpi_byte", known.byte))
        return Status{Code::unsupported,
                      "this Open MPI lacks the predefined objects of the mpi.h that the plugin was built with"};
    return std::unique_ptr<MpiLibrary>(std::make_unique<LookedUpMpiLibrary>(calls.value()));
}

}  // namespace npushmem::mpi
