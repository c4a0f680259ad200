// Is an MPI library running in this process? Whichever it is, without being linked with any.
#pragma once

namespace npushmem::launcher {

// MPI_Init has returned and MPI_Finalize has not been called.
bool mpi_is_running();

}  // namespace npushmem::launcher
