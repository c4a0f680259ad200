#include "core/runtime/peer_address_table.hpp"

#include <cstring>

namespace npushmem {

namespace {

// Packed form of an endpoint: this header, then the address, then the handle.
struct EndpointHeader {
    std::uint64_t transport;
    std::uint32_t address_bytes;
    std::uint32_t handle_bytes;
};

void append(Bytes& to, std::span<const std::byte> bytes) { to.insert(to.end(), bytes.begin(), bytes.end()); }

}  // namespace

Bytes pack_endpoints(std::span<const EndpointRecord> endpoints) {
    Bytes packed;
    for (const auto& endpoint : endpoints) {
        const EndpointHeader head{endpoint.transport, static_cast<std::uint32_t>(endpoint.address.size()),
                                  static_cast<std::uint32_t>(endpoint.handle.size())};
        append(packed, std::as_bytes(std::span(&head, 1)));
        append(packed, endpoint.address);
        append(packed, endpoint.handle);
    }
    return packed;
}

PeerAddressTable::Entry PeerAddressTable::find(std::uint64_t transport, int pe) const {
    if (pe < 0 || pe >= npes_) return {};
    for (auto rest = gathered_.of(pe); rest.size() >= sizeof(EndpointHeader);) {
        EndpointHeader head{};
        std::memcpy(&head, rest.data(), sizeof head);
        rest = rest.subspan(sizeof head);
        const std::uint64_t body = std::uint64_t{head.address_bytes} + head.handle_bytes;
        if (body > rest.size()) return {};
        if (head.transport == transport)
            return {true, rest.first(head.address_bytes), rest.subspan(head.address_bytes, head.handle_bytes)};
        rest = rest.subspan(body);
    }
    return {};
}

std::span<const std::byte> PeerAddressTable::address(std::uint64_t transport, int pe) const {
    return find(transport, pe).address;
}

std::span<const std::byte> PeerAddressTable::handle(std::uint64_t transport, int pe) const {
    return find(transport, pe).handle;
}

}  // namespace npushmem
