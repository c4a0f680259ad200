// Which ports of this PE and of a peer are connected, by the addresses that both exchange: the map of the job shows
// what this returns, and the wires connect what this returns.
#pragma once

#include <cstddef>
#include <span>
#include <string>
#include <vector>

#include "transports/network/wire.hpp"

namespace npushmem::network {

struct PortPair {
    std::size_t mine = 0;
    std::size_t theirs = 0;
    std::string text;  // "mlx5_0:1 -> 10.0.0.2, rail 0 on both ends"
};

// The peer whose ports have these addresses, one behind the other, of `bytes_of_one` bytes each.
struct PeerPorts {
    int pe = -1;
    std::span<const std::byte> addresses;
    std::size_t bytes_of_one = 1;

    [[nodiscard]] std::size_t count() const { return addresses.size() / bytes_of_one; }
    [[nodiscard]] std::span<const std::byte> address(std::size_t port) const {
        return addresses.subspan(port * bytes_of_one, bytes_of_one);
    }
};

// The pairs as pair_rails gives them, at least one. `mine`: the wires of this PE's ports, at least one. Fails with
// Code::protocol when the peer's bytes are no addresses.
Result<std::vector<PortPair>> pair_ports(int my_pe, std::span<const Wire* const> mine, const PeerPorts& theirs);

}  // namespace npushmem::network
