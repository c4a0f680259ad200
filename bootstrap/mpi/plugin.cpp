#include "bootstrap/mpi/mpi_bootstrap.hpp"
#include "npushmem/plugin/bootstrap_export.hpp"

NPUSHMEM_EXPORT_BOOTSTRAP(npushmem::mpi::MpiBootstrap, "mpi",
                          "a communicator of a running MPI program (Open MPI, MPICH)",
                          npushmem::mpi::config_rows().data(),
                          static_cast<uint32_t>(npushmem::mpi::config_rows().size()));
