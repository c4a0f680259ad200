// What PEs tell each other of a network transport at start: where it listens, and what it needs to touch a piece of
// memory.
#pragma once

#include <cstdint>
#include <span>
#include <string>

#include "npushmem/plugin/transport.hpp"

namespace npushmem::network {

// Layout: magic 4, version 2, bytes of the protocol 2, protocol, the wire's own address.
struct EndpointAddress {
    std::string protocol;
    Bytes wire;
};
Bytes encode(const EndpointAddress& address);
// Code::protocol for what no network transport of this version wrote.
Result<EndpointAddress> decode_address(std::span<const std::byte> bytes);

// Layout: magic 4, version 2, bytes of the key 2, region 8, base 8, bytes 8, key.
struct NetworkHandle {
    std::uint64_t region = 0;
    std::uint64_t base = 0;  // in the owner's address space; a number here
    std::uint64_t bytes = 0;
    Bytes key;
};
Bytes encode(const NetworkHandle& handle);
Result<NetworkHandle> decode_handle(std::span<const std::byte> bytes);

}  // namespace npushmem::network
