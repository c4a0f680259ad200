// SPDX-License-Identifier: BSD-3-Clause
#include <iterator>

#include "npushmem/plugin/transport_export.hpp"
#include "transports/libfabric/libfabric_wire.hpp"
#include "transports/network/network_transport.hpp"

namespace npushmem {
namespace {

// A network transport over libfabric.
class LibfabricTransport final : public network::NetworkTransport {
public:
    using NetworkTransport::NetworkTransport;
    static Result<std::unique_ptr<Transport>> open(const Host& host, const npushmem_transport_params& params);
};

Result<std::unique_ptr<Transport>> LibfabricTransport::open(const Host& host, const npushmem_transport_params& params) {
    auto settings = network::read_settings(host, "LIBFABRIC_");
    if (!settings.ok()) return settings.status();
    const auto atomics = network::read_native_atomics(host, "LIBFABRIC_");
    if (!atomics.ok()) return atomics.status();
    const libfabric::ProviderRequest request{host.config("LIBFABRIC_PROVIDER", "auto"), host.config("LIBFABRIC_DOMAIN"),
                                             atomics.value(), params.npes};
    auto chosen = libfabric::choose_provider(request, libfabric::query_provider);
    if (!chosen.ok()) return chosen.status();
    host.log(LogLevel::debug, chosen.value().note);
    auto wire = libfabric::LibfabricWire::open(std::move(chosen).value(), params.npes);
    if (!wire.ok()) return wire.status();
    return std::unique_ptr<Transport>(
        std::make_unique<LibfabricTransport>(host, params, std::move(wire).value(), settings.value()));
}

constexpr npushmem_config_row rows[] = {
    {"LIBFABRIC_PROVIDER", "auto", "string",
     "libfabric provider by its name in fi_info, for instance tcp;ofi_rxm; auto: the fastest available one of cxi, "
     "efa, "
     "verbs;ofi_rxm, tcp;ofi_rxm"},
    {"LIBFABRIC_DOMAIN", "", "string",
     "libfabric domain (network interface or NIC) to use; empty: the provider's first"},
    {"LIBFABRIC_PROGRESS_THREAD", "true", "bool",
     "a progress thread in each PE serves peers while the program computes; false: peers wait for the PE's next call"},
    {"LIBFABRIC_PEER_TIMEOUT", "30s", "duration",
     "a peer that has been silent for this long is reported as lost; 0: never"},
    {"LIBFABRIC_LANES", "2", "int",
     "maximum number of endpoints of a PE per peer, one per context, of 7 MB each over tcp; further contexts share "
     "them"},
    {"LIBFABRIC_NATIVE_ATOMICS", "auto", "string",
     "always: use libfabric's atomic operations where it has them; then no other operation of any PE may update the "
     "same words; auto, never: the target's CPU carries them out"},
};

}  // namespace
}  // namespace npushmem

NPUSHMEM_EXPORT_TRANSPORT_WITH_CONFIG(npushmem::LibfabricTransport, "libfabric",
                                      "peers of any host, over a provider of libfabric",
                                      npushmem::network::offered_capabilities, npushmem::rows,
                                      std::size(npushmem::rows));
