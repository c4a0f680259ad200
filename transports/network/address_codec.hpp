// SPDX-License-Identifier: BSD-3-Clause
// The encoding of the addresses and memory handles that PEs of a network transport exchange at start.
#pragma once

#include <cstdint>
#include <span>
#include <string>

#include "core/base/sip_hash.hpp"
#include "npushmem/plugin/transport.hpp"

namespace npushmem::network {

// The address of a PE. Layout: magic 4, version 2, size of `protocol` 2, checksum 8, key 16, protocol, the wire's
// address.
struct EndpointAddress {
    std::string protocol;
    Bytes wire;
    SipKey key{};  // authenticates messages to the PE
};
Bytes encode(const EndpointAddress& address);
// Fails with Code::protocol unless a network transport of this version encoded the bytes.
Result<EndpointAddress> decode_address(std::span<const std::byte> bytes);

// A memory handle. Layout: magic 4, version 2, size of `key` 2, checksum 8, region 8, base 8, bytes 8, key.
struct NetworkHandle {
    std::uint64_t region = 0;
    std::uint64_t base = 0;  // address in the owner's address space
    std::uint64_t bytes = 0;
    Bytes key;
};
Bytes encode(const NetworkHandle& handle);
Result<NetworkHandle> decode_handle(std::span<const std::byte> bytes);

}  // namespace npushmem::network
