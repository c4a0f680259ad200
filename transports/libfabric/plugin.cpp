#include "npushmem/plugin/transport_export.hpp"
#include "transports/libfabric/libfabric_transport.hpp"

namespace {

constexpr npushmem_config_row rows[] = {
    {"LIBFABRIC_PROVIDER", "auto", "string",
     "libfabric provider, for instance tcp;ofi_rxm, as fi_info names it; auto: the fastest of cxi, efa, verbs;ofi_rxm, "
     "tcp;ofi_rxm that is here"},
    {"LIBFABRIC_DOMAIN", "", "string",
     "libfabric domain (network interface or NIC) to use; empty: the provider's first"},
    {"LIBFABRIC_PROGRESS_THREAD", "true", "bool",
     "a thread of each PE serves peers while the program computes; without it they wait for the PE's next call"},
    {"LIBFABRIC_PEER_TIMEOUT", "30s", "duration", "a peer of which nothing is heard for so long is lost; 0: never"},
    {"LIBFABRIC_LANES", "16", "int",
     "contexts of a PE that have an endpoint of their own for the same peer; more share them"},
    {"LIBFABRIC_NATIVE_ATOMICS", "auto", "string",
     "always: libfabric's own atomic operations are used where it has them: then nothing but they, of all PEs, may "
     "update the "
     "same words; auto, never: the target's CPU carries them out"},
};

}  // namespace

NPUSHMEM_EXPORT_TRANSPORT_WITH_CONFIG(npushmem::LibfabricTransport, "libfabric",
                                      "peers of any host, over a provider of libfabric",
                                      NPUSHMEM_CAP_PUT | NPUSHMEM_CAP_GET | NPUSHMEM_CAP_ATOMIC |
                                          NPUSHMEM_CAP_PUT_SIGNAL | NPUSHMEM_CAP_REMOTE,
                                      rows, 6);
