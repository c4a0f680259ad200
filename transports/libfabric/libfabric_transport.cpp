#include "transports/libfabric/libfabric_transport.hpp"

#include "transports/libfabric/libfabric_wire.hpp"
#include "transports/network/read_settings.hpp"

namespace npushmem {

Result<std::unique_ptr<Transport>> LibfabricTransport::open(const Host& host, const npushmem_transport_params& params) {
    auto settings = network::read_settings(host, "LIBFABRIC_");
    if (!settings.ok()) return settings.status();
    const auto atomics = network::read_native_atomics(host, "LIBFABRIC_");
    if (!atomics.ok()) return atomics.status();
    const libfabric::ProviderRequest request{host.config("LIBFABRIC_PROVIDER", "auto"), host.config("LIBFABRIC_DOMAIN"),
                                             atomics.value()};
    auto chosen = libfabric::choose_provider(request, libfabric::query_provider);
    if (!chosen.ok()) return chosen.status();
    host.log(LogLevel::debug, chosen.value().note);
    auto wire = libfabric::LibfabricWire::open(std::move(chosen).value(), params.npes);
    if (!wire.ok()) return wire.status();
    return std::unique_ptr<Transport>(
        std::make_unique<LibfabricTransport>(params, std::move(wire).value(), settings.value()));
}

}  // namespace npushmem
