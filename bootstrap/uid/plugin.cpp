// SPDX-License-Identifier: BSD-3-Clause
#include "bootstrap/rendezvous/settings.hpp"
#include "bootstrap/uid/uid_bootstrap.hpp"
#include "npushmem/plugin/bootstrap_export.hpp"

NPUSHMEM_EXPORT_BOOTSTRAP_WITH_CONFIG(npushmem::uid::UidBootstrap, "uid", "rendezvous by a 128-byte unique id",
                                      npushmem::rendezvous::config_rows().data(),
                                      static_cast<uint32_t>(npushmem::rendezvous::config_rows().size()));
