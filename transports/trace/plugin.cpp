// SPDX-License-Identifier: BSD-3-Clause
#include <iterator>

#include "npushmem/plugin/transport_export.hpp"
#include "transports/trace/trace_transport.hpp"

namespace {

constexpr npushmem_config_row rows[] = {
    {"TRACE_CALLS", "true", "bool",
     "log every call at debug level 'trace'; false: log only a summary when the transport closes"},
};

}  // namespace

NPUSHMEM_EXPORT_TRANSPORT_WITH_CONFIG(npushmem::TraceTransport, "trace",
                                      "logs every call to the wrapped transport, with sizes and times",
                                      NPUSHMEM_CAP_PUT | NPUSHMEM_CAP_GET | NPUSHMEM_CAP_ATOMIC |
                                          NPUSHMEM_CAP_PUT_SIGNAL | NPUSHMEM_CAP_ORDERED | NPUSHMEM_CAP_DEVICES |
                                          NPUSHMEM_CAP_REMOTE | NPUSHMEM_CAP_REPORTS_DEATH |
                                          NPUSHMEM_CAP_TARGET_PROGRESS | NPUSHMEM_CAP_PUT_STRIDED |
                                          NPUSHMEM_CAP_DECORATOR,
                                      rows, std::size(rows));
