// The way to a peer's port, as address handles and queue pairs want it.
#pragma once

#include <cstring>

#include "transports/verbs/connect_message.hpp"
#include "transports/verbs/opened_port.hpp"

namespace npushmem::verbs {

inline ibv_ah_attr address_handle_attributes(const PortAddress& peer, const OpenedPort& port) {
    ibv_ah_attr out{};
    out.dlid = peer.lid;
    out.sl = port.settings().service_level;
    out.port_num = port.number();
    // Within a subnet of InfiniBand the local identifier is enough.
    constexpr std::size_t prefix_bytes = 8;
    const bool same_subnet = std::memcmp(peer.gid.data(), port.gid().gid.raw, prefix_bytes) == 0;
    out.is_global = port.ethernet() || !same_subnet ? 1 : 0;
    if (out.is_global == 0) return out;
    std::memcpy(out.grh.dgid.raw, peer.gid.data(), peer.gid.size());
    out.grh.sgid_index = static_cast<std::uint8_t>(port.gid().gid_index);
    constexpr std::uint8_t hops = 255;
    out.grh.hop_limit = hops;
    out.grh.traffic_class = port.settings().traffic_class;
    return out;
}

}  // namespace npushmem::verbs
