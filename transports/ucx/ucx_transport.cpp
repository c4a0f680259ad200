#include "transports/ucx/ucx_transport.hpp"

#include "transports/network/read_settings.hpp"
#include "transports/ucx/ucx_wire.hpp"

namespace npushmem {

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
        std::make_unique<UcxTransport>(params, std::move(wire).value(), settings.value()));
}

}  // namespace npushmem
