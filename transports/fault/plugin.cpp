// SPDX-License-Identifier: BSD-3-Clause
#include <iterator>

#include "npushmem/plugin/transport_export.hpp"
#include "transports/fault/fault_transport.hpp"

namespace {

constexpr npushmem_config_row rows[] = {
    {"FAULT_SEED", "1", "uint", "seed of all random choices; each PE derives its own from it"},
    {"FAULT_DELAY", "4", "uint",
     "maximum number of steps (calls of progress, test, quiet) for which an operation is held back"},
    {"FAULT_REORDER", "true", "bool", "carry out operations that no fence orders in random order"},
    {"FAULT_FAIL", "", "list",
     "calls that fail, as <function>:<number of the call>:<code>, for instance put:3:timeout"},
    {"FAULT_AGAIN", "10", "uint",
     "percentage, 0 to 90, of operations that are rejected for lack of room and must be posted again"},
};

}  // namespace

NPUSHMEM_EXPORT_TRANSPORT_WITH_CONFIG(npushmem::FaultTransport, "fault",
                                      "delays, reorders and fails operations of the wrapped transport, by a seed",
                                      NPUSHMEM_CAP_PUT | NPUSHMEM_CAP_GET | NPUSHMEM_CAP_ATOMIC |
                                          NPUSHMEM_CAP_PUT_SIGNAL | NPUSHMEM_CAP_DEVICES | NPUSHMEM_CAP_REMOTE |
                                          NPUSHMEM_CAP_REPORTS_DEATH | NPUSHMEM_CAP_TARGET_PROGRESS |
                                          NPUSHMEM_CAP_PUT_STRIDED | NPUSHMEM_CAP_DECORATOR,
                                      rows, std::size(rows));
