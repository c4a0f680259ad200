#include "bootstrap/pmi2/pmi2_bootstrap.hpp"
#include "bootstrap/rendezvous/settings.hpp"
#include "npushmem/plugin/bootstrap_export.hpp"

NPUSHMEM_EXPORT_BOOTSTRAP(npushmem::pmi2::Pmi2Bootstrap, "pmi2", "PMI-2 launchers: srun --mpi=pmi2, MPICH's mpiexec",
                          npushmem::rendezvous::launched_config_rows().data(),
                          static_cast<uint32_t>(npushmem::rendezvous::launched_config_rows().size()));
