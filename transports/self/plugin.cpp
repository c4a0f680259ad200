// SPDX-License-Identifier: BSD-3-Clause
#include "npushmem/plugin/transport_export.hpp"
#include "transports/self/self_transport.hpp"

NPUSHMEM_EXPORT_TRANSPORT(npushmem::SelfTransport, "self", "the PE itself, by loads and stores",
                          npushmem::mapped_capabilities);
