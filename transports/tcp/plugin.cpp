// SPDX-License-Identifier: BSD-3-Clause
#include <fmt/format.h>

#include <iterator>

#include "npushmem/plugin/transport_export.hpp"
#include "transports/network/network_transport.hpp"
#include "transports/tcp/tcp_wire.hpp"

namespace npushmem {
namespace {

// A network transport over the kernel's TCP.
class TcpTransport final : public network::NetworkTransport {
public:
    using NetworkTransport::NetworkTransport;
    static Result<std::unique_ptr<Transport>> open(const Host& host, const npushmem_transport_params& params);
};

Result<Address> own_address(const Host& host) {
    const std::string family_text = host.config("TCP_FAMILY", "auto");
    const auto family = parse_family(family_text);
    if (!family.ok()) return family.status().within(fmt::format("NPUSHMEM_TCP_FAMILY='{}'", family_text));
    return choose_local_address(host.config("TCP_IFNAME"), family.value(), "NPUSHMEM_TCP_");
}

Result<std::unique_ptr<Transport>> TcpTransport::open(const Host& host, const npushmem_transport_params& params) {
    auto settings = network::read_settings(host, "TCP_");
    if (!settings.ok()) return settings.status();
    const auto where = own_address(host);
    if (!where.ok()) return where.status();
    auto wire = tcp::TcpWire::open(where.value(), params.pe, params.npes, settings.value().lanes,
                                   settings.value().thread ? tcp::TcpWire::usual_gap : std::chrono::microseconds{0});
    if (!wire.ok()) return wire.status();
    return std::unique_ptr<Transport>(
        std::make_unique<TcpTransport>(host, params, std::move(wire).value(), settings.value()));
}

constexpr npushmem_config_row rows[] = {
    {"TCP_IFNAME", "", "string",
     "network interface whose address a PE uses: the first that fits, as for NPUSHMEM_BOOTSTRAP_UID_SOCK_IFNAME, for "
     "instance eth0; empty: the first that is up, the loopback interface last"},
    {"TCP_FAMILY", "auto", "string", "auto: IPv4 first; AF_INET: IPv4; AF_INET6: IPv6"},
    {"TCP_PROGRESS_THREAD", "true", "bool",
     "a progress thread in each PE serves peers while the program computes; false: peers wait for the PE's next call"},
    {"TCP_PEER_TIMEOUT", "30s", "duration", "a peer that has been silent for this long is reported as lost; 0: never"},
    {"TCP_LANES", "16", "int",
     "maximum number of connections of a PE to a peer, one per context; further contexts share them"},
};

}  // namespace
}  // namespace npushmem

NPUSHMEM_EXPORT_TRANSPORT_WITH_CONFIG(npushmem::TcpTransport, "tcp", "peers of any host, over the kernel's TCP",
                                      npushmem::network::offered_capabilities, npushmem::rows,
                                      std::size(npushmem::rows));
