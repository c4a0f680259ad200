#include "bootstrap/rendezvous/settings.hpp"
#include "bootstrap/shmem/shmem_bootstrap.hpp"
#include "npushmem/plugin/bootstrap_export.hpp"

NPUSHMEM_EXPORT_BOOTSTRAP(npushmem::shmem::ShmemBootstrap, "shmem", "a running OpenSHMEM program of another library",
                          npushmem::rendezvous::launched_config_rows().data(),
                          static_cast<uint32_t>(npushmem::rendezvous::launched_config_rows().size()));
