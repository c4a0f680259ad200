// SPDX-License-Identifier: BSD-3-Clause
// Addresses and memory handles that PEs exchange at start.
#include <cstring>

#include "tests/fuzz/targets.hpp"
#include "transports/network/address_codec.hpp"
#include "transports/shared/memory_handle.hpp"

namespace npushmem::fuzz {
namespace {

void check_address(Input bytes) {
    const auto address = network::decode_address(bytes);
    if (!address.ok()) return require_message(address.status());
    require(std::ranges::equal(network::encode(address.value()), bytes), "an address changes by decoding and encoding");
}

void check_network_handle(Input bytes) {
    const auto handle = network::decode_handle(bytes);
    if (!handle.ok()) return require_message(handle.status());
    require(std::ranges::equal(network::encode(handle.value()), bytes), "a handle changes by decoding and encoding");
}

void check_shared_handle(Input bytes) {
    const auto handle = shared_memory::decode(bytes);
    if (!handle.ok()) return require_message(handle.status());
    require(handle.value().offset + handle.value().bytes >= handle.value().offset, "a range exceeds 64 bits");
    require(std::ranges::equal(shared_memory::encode(handle.value()), bytes), "a handle changes");
}

// The input's parts in valid form, with one byte changed by the last two bytes: the checksum must detect the change.
void check_checksums(Taker& in) {
    network::NetworkHandle handle;
    for (auto* field : {&handle.region, &handle.base, &handle.bytes}) {
        const Input taken = in.bytes(sizeof *field);
        std::memcpy(field, taken.data(), taken.size());
    }
    const std::size_t at = in.byte();
    const std::byte flipped{in.byte()};
    handle.key.assign(in.rest().begin(), in.rest().end());
    Bytes encoded = network::encode(handle);
    check_network_handle(encoded);
    require(network::decode_handle(encoded).ok(), "an encoded handle is rejected");
    encoded[at % encoded.size()] ^= flipped;
    require(flipped == std::byte{0} || !network::decode_handle(encoded).ok(), "a changed handle is accepted");
    const network::EndpointAddress address{in.line(), handle.key, {}};
    require(network::decode_address(network::encode(address)).ok(), "an encoded address is rejected");
}

}  // namespace

// The first byte selects the check.
void network_codec(Input input) {
    Taker in(input);
    switch (in.byte() % 4) {
        case 0: return check_address(in.rest());
        case 1: return check_network_handle(in.rest());
        case 2: return check_shared_handle(in.rest());
        default: return check_checksums(in);
    }
}

}  // namespace npushmem::fuzz
