// SPDX-License-Identifier: BSD-3-Clause
#include "npushmem/plugin/transport_export.hpp"
#include "transports/shared/shared_memory_transport.hpp"

NPUSHMEM_EXPORT_TRANSPORT(npushmem::SharedMemoryTransport, "p2p", "peers of the same host, by shared memory",
                          npushmem::mapped_capabilities);
