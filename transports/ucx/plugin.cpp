// SPDX-License-Identifier: BSD-3-Clause
#include <iterator>

#include "npushmem/plugin/transport_export.hpp"
#include "transports/network/network_transport.hpp"
#include "transports/ucx/ucx_wire.hpp"

namespace npushmem {
namespace {

// A network transport over UCX.
class UcxTransport final : public network::NetworkTransport {
public:
    using NetworkTransport::NetworkTransport;
    static Result<std::unique_ptr<Transport>> open(const Host& host, const npushmem_transport_params& params);
};

Result<std::unique_ptr<Transport>> UcxTransport::open(const Host& host, const npushmem_transport_params& params) {
    auto settings = network::read_settings(host, "UCX_");
    if (!settings.ok()) return settings.status();
    const auto atomics = network::read_native_atomics(host, "UCX_");
    if (!atomics.ok()) return atomics.status();
    auto wire =
        ucx::UcxWire::open({host.config("UCX_TLS"), host.config("UCX_NET_DEVICES"), atomics.value()}, params.npes);
    if (!wire.ok()) return wire.status();
    host.log(LogLevel::debug, wire.value()->traits().name);
    return std::unique_ptr<Transport>(
        std::make_unique<UcxTransport>(host, params, std::move(wire).value(), settings.value()));
}

constexpr npushmem_config_row rows[] = {
    {"UCX_TLS", "", "string",
     "UCX transports to use, by their names in ucx_info -d, for instance tcp or rc,ud; empty: the value of UCX_TLS, "
     "else "
     "UCX's choice"},
    {"UCX_NET_DEVICES", "", "string",
     "network devices that UCX uses, for instance eth0 or mlx5_0:1; empty: the value of UCX_NET_DEVICES, else all"},
    {"UCX_PROGRESS_THREAD", "true", "bool",
     "a progress thread in each PE serves peers while the program computes; false: peers wait for the PE's next call"},
    {"UCX_PEER_TIMEOUT", "30s", "duration", "a peer that has been silent for this long is reported as lost; 0: never"},
    {"UCX_LANES", "16", "int",
     "maximum number of workers of a PE per peer, one per context; further contexts share them"},
    {"UCX_NATIVE_ATOMICS", "auto", "string",
     "always: use UCX's 64-bit atomic operations; then no other operation of any PE may update the same words; auto, "
     "never: the target's CPU carries them out"},
};

}  // namespace
}  // namespace npushmem

NPUSHMEM_EXPORT_TRANSPORT_WITH_CONFIG(npushmem::UcxTransport, "ucx", "peers of any host, over UCX",
                                      npushmem::network::offered_capabilities, npushmem::rows,
                                      std::size(npushmem::rows));
