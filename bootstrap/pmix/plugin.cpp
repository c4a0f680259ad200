#include "bootstrap/pmix/pmix_bootstrap.hpp"
#include "bootstrap/rendezvous/settings.hpp"
#include "npushmem/plugin/bootstrap_export.hpp"

NPUSHMEM_EXPORT_BOOTSTRAP(npushmem::pmix::PmixBootstrap, "pmix", "PMIx launchers: Open MPI's mpirun, srun --mpi=pmix",
                          npushmem::rendezvous::launched_config_rows().data(),
                          static_cast<uint32_t>(npushmem::rendezvous::launched_config_rows().size()));
