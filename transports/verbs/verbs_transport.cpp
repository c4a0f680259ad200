// SPDX-License-Identifier: BSD-3-Clause
#include "transports/verbs/verbs_transport.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cstring>

#include "core/base/parse.hpp"
#include "transports/network/network_transport.hpp"
#include "transports/verbs/ports.hpp"
#include "transports/verbs/userfault_watch.hpp"
#include "transports/verbs/verbs_library.hpp"

namespace npushmem {
namespace {

// The number of port addresses that fit into NPUSHMEM_ADDRESS_MAX bytes.
constexpr std::size_t max_rails = 5;

}  // namespace

void VerbsTransport::watch_memory(WireParameters& wire_parameters) {
    if (wire_parameters.settings.cache_bytes == 0) return;
    auto watch = verbs::UserfaultWatch::open();
    if (watch.ok())
        wire_parameters.watch = std::move(watch).value();
    else
        wire_parameters.note = fmt::format("buffers outside of the heap are registered for each transfer, as {}",
                                           watch.status().message());
}

Result<std::unique_ptr<Transport>> VerbsTransport::open(const Host& host, const npushmem_transport_params& params) {
    auto shared = network::read_settings(host, "VERBS_");
    if (!shared.ok()) return shared.status();
    const auto settings = verbs::read_verbs_settings(host);
    if (!settings.ok()) return settings.status();
    auto library = verbs::load_library();
    if (!library.ok()) return library.status();
    WireParameters wire_parameters{host,
                                   std::move(library).value(),
                                   settings.value(),
                                   {params.pe, params.npes, params.local_index, verbs::host_subnets()},
                                   nullptr,
                                   {}};
    watch_memory(wire_parameters);
    auto wire = verbs::VerbsWire::open(wire_parameters.library, wire_parameters.settings, wire_parameters.local_pe);
    if (!wire.ok()) return wire.status();
    verbs::VerbsWire& opened = *wire.value();
    opened.use_watch(wire_parameters.watch);
    // With REMOTE_TRANSPORT=auto report an unusable port now, while another transport can be selected.
    if (lowercase(host.config("REMOTE_TRANSPORT", "")) == "auto")
        if (Status usable = opened.check_usable(); !usable.ok()) return usable;
    return std::unique_ptr<Transport>(std::make_unique<VerbsTransport>(params, std::move(wire_parameters), opened,
                                                                       std::move(wire).value(), shared.value()));
}

Reach VerbsTransport::reach(const npushmem_peer& peer) {
    Reach out = NetworkTransport::reach(peer);
    if (out.reachable() && !wire_parameters_.note.empty()) out.why += "; " + wire_parameters_.note;
    return out;
}

// The atomics of two devices are atomic with each other only if they are atomic with the CPU.
verbs::VerbsSettings VerbsTransport::settings_for(std::span<const std::uint32_t> index) const {
    verbs::VerbsSettings out = wire_parameters_.settings;
    const char* const first = ports_.at(index.front()).name;
    const bool one_device = std::all_of(index.begin(), index.end(),
                                        [&](std::uint32_t i) { return std::strcmp(ports_.at(i).name, first) == 0; });
    if (!one_device && out.atomics == verbs::NativeAtomics::always) out.atomics = verbs::NativeAtomics::if_coherent;
    return out;
}

Result<network::MultiRailWire::Rail> VerbsTransport::open_rail(std::uint32_t index,
                                                               const verbs::VerbsSettings& settings) const {
    auto wire = verbs::VerbsWire::open(wire_parameters_.library, settings, wire_parameters_.local_pe);
    if (!wire.ok()) return wire.status();
    wire.value()->use_watch(wire_parameters_.watch);
    wire.value()->use_caches(wire_parameters_.caches);
    if (Status used = wire.value()->use_port(index); !used.ok()) return used;
    if (const auto address = wire.value()->address(); !address.ok()) return address.status();
    return network::MultiRailWire::Rail{std::move(wire).value(), ports_.at(index).bits_per_second};
}

void VerbsTransport::skip_port(std::uint32_t index, const std::string& why) const {
    wire_parameters_.host.log(LogLevel::warn,
                              fmt::format("RDMA port {} is left out: {}", verbs::name_of(ports_.at(index)), why));
}

Status VerbsTransport::use_devices(std::span<const std::uint32_t> index) {
    if (index.empty()) return {};
    if (index.size() == 1 && single_ != nullptr) return single_->use_port(index.front());
    for (const std::uint32_t each : index)
        if (each >= ports_.size()) return {Code::argument, fmt::format("RDMA port {} does not exist", each)};
    const verbs::VerbsSettings settings = settings_for(index);
    std::vector<network::MultiRailWire::Rail> rails;
    for (const std::uint32_t each : index) {
        if (rails.size() == max_rails) {
            skip_port(each, fmt::format("a PE uses at most {} ports", max_rails));
            continue;
        }
        auto rail = open_rail(each, settings);
        if (!rail.ok() && rails.empty()) return rail.status();
        if (!rail.ok()) {
            skip_port(each, rail.status().message());
            continue;
        }
        const std::string& protocol = rail.value().wire->traits().protocol;
        if (!rails.empty() && protocol != rails.front().wire->traits().protocol)
            skip_port(each,
                      fmt::format("it is {}, the first port {}", protocol, rails.front().wire->traits().protocol));
        else
            rails.push_back(std::move(rail).value());
    }
    single_ = nullptr;
    if (rails.size() == 1)
        use_wire(std::move(rails.front().wire));
    else
        use_wire(std::make_unique<network::MultiRailWire>(wire_parameters_.local_pe.pe, std::move(rails),
                                                          settings.stripe_bytes));
    return {};
}

}  // namespace npushmem
