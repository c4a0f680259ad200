#include "bootstrap/pmi/pmi_bootstrap.hpp"
#include "bootstrap/rendezvous/settings.hpp"
#include "npushmem/plugin/bootstrap_export.hpp"

NPUSHMEM_EXPORT_BOOTSTRAP(npushmem::pmi::PmiBootstrap, "pmi", "PMI-1 launchers: MPICH's mpiexec, srun --mpi=pmi2",
                          npushmem::rendezvous::launched_config_rows().data(),
                          static_cast<uint32_t>(npushmem::rendezvous::launched_config_rows().size()));
