#include "transports/network/port_pairs.hpp"

#include <fmt/format.h>

namespace npushmem::network {
namespace {

Result<std::vector<Port>> ports_of(const PeerPorts& peer, const Wire& reader) {
    if (peer.addresses.empty() || peer.addresses.size() % peer.bytes_of_one != 0)
        return Status{Code::protocol, fmt::format("PE {} sent {} bytes, which are no addresses of ports: each has {}",
                                                  peer.pe, peer.addresses.size(), peer.bytes_of_one)};
    std::vector<Port> out;
    for (std::size_t i = 0; i < peer.count(); ++i) {
        auto port = reader.port_of(peer.address(i));
        if (!port.ok()) return port.status();
        out.push_back(std::move(port).value());
    }
    return out;
}

std::vector<RailId> rails_of(const std::vector<Port>& ports) {
    std::vector<RailId> out;
    for (const Port& port : ports) out.push_back(port.rail);
    return out;
}

}  // namespace

Result<std::vector<PortPair>> pair_ports(int my_pe, std::span<const Wire* const> mine, const PeerPorts& theirs) {
    const auto others = ports_of(theirs, *mine.front());
    if (!others.ok()) return others.status();
    std::vector<Port> own;
    for (const Wire* wire : mine) own.push_back(wire->port());
    std::vector<PortPair> out;
    for (const auto& [i, j] : pair_rails(my_pe, rails_of(own), theirs.pe, rails_of(others.value()))) {
        const Port& other = others.value()[j];
        out.push_back(
            {i, j, fmt::format("{} -> {}, {}", own[i].name, other.name, pairing_reason(own[i].rail, other.rail))});
    }
    return out;
}

}  // namespace npushmem::network
