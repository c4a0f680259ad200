#include "npushmem/plugin/transport_export.hpp"
#include "transports/ucx/ucx_transport.hpp"

namespace {

constexpr npushmem_config_row rows[] = {
    {"UCX_TLS", "", "string",
     "UCX transports that may be used, for instance tcp or rc,ud, as ucx_info -d names them; empty: what UCX_TLS says, "
     "otherwise UCX's choice"},
    {"UCX_NET_DEVICES", "", "string",
     "network devices that UCX may use, for instance eth0 or mlx5_0:1; empty: what UCX_NET_DEVICES says, otherwise "
     "all"},
    {"UCX_PROGRESS_THREAD", "true", "bool",
     "a thread of each PE serves peers while the program computes; without it they wait for the PE's next call"},
    {"UCX_PEER_TIMEOUT", "30s", "duration", "a peer of which nothing is heard for so long is lost; 0: never"},
    {"UCX_LANES", "16", "int", "contexts of a PE that have a worker of their own for the same peer; more share them"},
    {"UCX_NATIVE_ATOMICS", "auto", "string",
     "always: UCX's own atomic operations are used on 64 bits: then nothing but they, of all PEs, may update the "
     "same words; auto, never: the target's CPU carries them out"},
};

}  // namespace

NPUSHMEM_EXPORT_TRANSPORT_WITH_CONFIG(npushmem::UcxTransport, "ucx", "peers of any host, over UCX",
                                      NPUSHMEM_CAP_PUT | NPUSHMEM_CAP_GET | NPUSHMEM_CAP_ATOMIC |
                                          NPUSHMEM_CAP_PUT_SIGNAL | NPUSHMEM_CAP_REMOTE,
                                      rows, 6);
