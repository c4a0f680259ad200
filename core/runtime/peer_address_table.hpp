// What the PEs told each other of their transports: under each transport's name, the endpoint's address and the handle
// of the PE's slice of symmetric memory. Small enough to keep: imports happen when a PE is first used.
#pragma once

#include <span>
#include <string>
#include <vector>

#include "core/map/transport_map.hpp"
#include "core/runtime/exchange.hpp"

namespace npushmem {

struct EndpointRecord {
    std::uint64_t transport = 0;  // hash of the transport's name: PEs may have selected different ones
    Bytes address;
    Bytes handle;
};

Bytes pack_endpoints(std::span<const EndpointRecord> endpoints);

class PeerAddressTable {
public:
    PeerAddressTable() = default;
    PeerAddressTable(GatheredBytes gathered, int npes) : gathered_(std::move(gathered)), npes_(npes) {}

    // Null span with no data when there is no such PE, it has not opened a transport of this name, or sent bytes that
    // do not parse.
    [[nodiscard]] std::span<const std::byte> address(std::uint64_t transport, int pe) const;
    [[nodiscard]] std::span<const std::byte> handle(std::uint64_t transport, int pe) const;
    [[nodiscard]] bool has(std::uint64_t transport, int pe) const { return find(transport, pe).present; }

private:
    struct Entry {
        bool present = false;
        std::span<const std::byte> address;
        std::span<const std::byte> handle;
    };
    [[nodiscard]] Entry find(std::uint64_t transport, int pe) const;

    GatheredBytes gathered_;
    int npes_ = 0;
};

}  // namespace npushmem
