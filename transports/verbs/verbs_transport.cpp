#include "transports/verbs/verbs_transport.hpp"

#include "core/base/strings.hpp"
#include "transports/network/read_settings.hpp"
#include "transports/verbs/loaded_library.hpp"
#include "transports/verbs/verbs_wire.hpp"

namespace npushmem {

Result<std::unique_ptr<Transport>> VerbsTransport::open(const Host& host, const npushmem_transport_params& params) {
    auto shared = network::read_settings(host, "VERBS_");
    if (!shared.ok()) return shared.status();
    const auto settings = verbs::read_verbs_settings(host);
    if (!settings.ok()) return settings.status();
    auto library = verbs::load_library();
    if (!library.ok()) return library.status();
    auto wire = verbs::VerbsWire::open(std::move(library).value(), settings.value(),
                                       {params.pe, params.npes, params.local_index});
    if (!wire.ok()) return wire.status();
    verbs::VerbsWire& opened = *wire.value();
    // Whoever asks for the best that works is told now, while another can be taken.
    if (lowercase(host.config("REMOTE_TRANSPORT", "")) == "auto")
        if (Status proved = opened.prove(); !proved.ok()) return proved;
    return std::unique_ptr<Transport>(
        std::make_unique<VerbsTransport>(params, opened, std::move(wire).value(), shared.value()));
}

Result<std::vector<npushmem_device>> VerbsTransport::devices() { return wire_.ports(); }

Status VerbsTransport::use_devices(std::span<const std::uint32_t> index) {
    return index.empty() ? Status{} : wire_.use_port(index.front());
}

}  // namespace npushmem
