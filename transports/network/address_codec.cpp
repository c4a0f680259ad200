// SPDX-License-Identifier: BSD-3-Clause
#include "transports/network/address_codec.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cstddef>
#include <cstring>

#include "core/base/hash.hpp"

namespace npushmem::network {
namespace {

constexpr std::uint32_t address_magic = 0x4e574144;  // "NWAD"
constexpr std::uint32_t handle_magic = 0x4e574d48;   // "NWMH"
constexpr std::uint16_t version = 3;

struct BlobHeader {
    std::uint32_t magic;
    std::uint16_t version;
    std::uint16_t length;    // of the first variable part
    std::uint64_t checksum;  // of everything else: network libraries do not survive malformed addresses and keys
};
struct Place {
    std::uint64_t region;
    std::uint64_t base;
    std::uint64_t bytes;
};

template <class Plain>
void append(Bytes& out, const Plain& value) {
    const auto bytes = std::as_bytes(std::span(&value, 1));
    out.insert(out.end(), bytes.begin(), bytes.end());
}

// Computed with its own place zero. `rest` is what follows the header.
std::uint64_t checksum_of(BlobHeader header, std::span<const std::byte> rest) {
    header.checksum = 0;
    Bytes all;
    append(all, header);
    all.insert(all.end(), rest.begin(), rest.end());
    return hash_bytes({reinterpret_cast<const char*>(all.data()), all.size()});
}

Bytes sealed(BlobHeader header, const Bytes& rest) {
    header.checksum = checksum_of(header, rest);
    Bytes out;
    append(out, header);
    out.insert(out.end(), rest.begin(), rest.end());
    return out;
}

// Removes the header from `bytes`.
Status read_header(std::span<const std::byte>& bytes, std::uint32_t magic, const char* what, BlobHeader& header) {
    if (bytes.size() < sizeof header)
        return {Code::protocol,
                fmt::format("{} bytes are too few for the {} of a network transport", bytes.size(), what)};
    std::memcpy(&header, bytes.data(), sizeof header);
    bytes = bytes.subspan(sizeof header);
    if (header.magic != magic)
        return {Code::protocol, fmt::format("the {} does not belong to a network transport", what)};
    if (header.version != version)
        return {Code::protocol, fmt::format("the peer's {} has version {}, this PE's has {}: all PEs must run the same "
                                            "npushmem",
                                            what, header.version, version)};
    if (header.checksum != checksum_of(header, bytes))
        return {Code::protocol,
                fmt::format("the peer's {} of {} bytes was changed on its way: its checksum does not match", what,
                            sizeof header + bytes.size())};
    return {};
}

}  // namespace

Bytes encode(const EndpointAddress& address) {
    const auto protocol = std::as_bytes(std::span(address.protocol));
    Bytes rest(address.key.begin(), address.key.end());
    rest.insert(rest.end(), protocol.begin(), protocol.end());
    rest.insert(rest.end(), address.wire.begin(), address.wire.end());
    return sealed({address_magic, version, static_cast<std::uint16_t>(address.protocol.size()), 0}, rest);
}

Result<EndpointAddress> decode_address(std::span<const std::byte> bytes) {
    BlobHeader header{};
    if (Status s = read_header(bytes, address_magic, "address", header); !s.ok()) return s;
    EndpointAddress out;
    if (bytes.size() < out.key.size() + header.length) return Status{Code::protocol, "the address is truncated"};
    std::ranges::copy(bytes.first(out.key.size()), out.key.begin());
    bytes = bytes.subspan(out.key.size());
    out.protocol.assign(reinterpret_cast<const char*>(bytes.data()), header.length);
    out.wire.assign(bytes.begin() + header.length, bytes.end());
    return out;
}

Bytes encode(const NetworkHandle& handle) {
    Bytes rest;
    append(rest, Place{handle.region, handle.base, handle.bytes});
    rest.insert(rest.end(), handle.key.begin(), handle.key.end());
    return sealed({handle_magic, version, static_cast<std::uint16_t>(handle.key.size()), 0}, rest);
}

Result<NetworkHandle> decode_handle(std::span<const std::byte> bytes) {
    BlobHeader header{};
    if (Status s = read_header(bytes, handle_magic, "memory handle", header); !s.ok()) return s;
    Place place{};
    if (bytes.size() != sizeof place + header.length)
        return Status{Code::protocol, fmt::format("a memory handle has {} bytes after its header, expected {}",
                                                  bytes.size(), sizeof place + header.length)};
    std::memcpy(&place, bytes.data(), sizeof place);
    NetworkHandle out{place.region, place.base, place.bytes, {}};
    out.key.assign(bytes.begin() + sizeof place, bytes.end());
    return out;
}

}  // namespace npushmem::network
