#include "npushmem/plugin/transport_export.hpp"
#include "transports/p2p/p2p_transport.hpp"

NPUSHMEM_EXPORT_TRANSPORT(npushmem::P2pTransport, "p2p", "peers of the same host, by shared memory",
                          npushmem::mapped_capabilities);
