// SPDX-License-Identifier: BSD-3-Clause
#include "npushmem/plugin/transport_export.hpp"
#include "transports/nomap/nomap_transport.hpp"

NPUSHMEM_EXPORT_TRANSPORT(npushmem::NomapTransport, "nomap", "hides the wrapped transport's mapped memory",
                          NPUSHMEM_CAP_PUT | NPUSHMEM_CAP_GET | NPUSHMEM_CAP_ATOMIC | NPUSHMEM_CAP_PUT_SIGNAL |
                              NPUSHMEM_CAP_ORDERED | NPUSHMEM_CAP_DEVICES | NPUSHMEM_CAP_REMOTE |
                              NPUSHMEM_CAP_REPORTS_DEATH | NPUSHMEM_CAP_TARGET_PROGRESS | NPUSHMEM_CAP_PUT_STRIDED |
                              NPUSHMEM_CAP_DECORATOR);
