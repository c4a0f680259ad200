#include "transports/network/contact.hpp"

#include <fmt/format.h>

#include <cstring>

namespace npushmem::network {
namespace {

constexpr std::uint32_t address_magic = 0x4e574144;  // "NWAD"
constexpr std::uint32_t handle_magic = 0x4e574d48;   // "NWMH"
constexpr std::uint16_t version = 1;

struct Front {
    std::uint32_t magic;
    std::uint16_t version;
    std::uint16_t length;  // of the part that varies and comes first
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

// Takes the front off `bytes`.
Status take_front(std::span<const std::byte>& bytes, std::uint32_t magic, const char* what, Front& front) {
    if (bytes.size() < sizeof front)
        return {Code::protocol, fmt::format("{} bytes are no {} of a network transport", bytes.size(), what)};
    std::memcpy(&front, bytes.data(), sizeof front);
    bytes = bytes.subspan(sizeof front);
    if (front.magic != magic) return {Code::protocol, fmt::format("this {} is not of a network transport", what)};
    if (front.version != version)
        return {Code::protocol, fmt::format("the peer's {} has version {}, this PE's has {}: all PEs must run the same "
                                            "npushmem",
                                            what, front.version, version)};
    return {};
}

}  // namespace

Bytes encode(const EndpointAddress& address) {
    Bytes out;
    append(out, Front{address_magic, version, static_cast<std::uint16_t>(address.dialect.size())});
    const auto dialect = std::as_bytes(std::span(address.dialect));
    out.insert(out.end(), dialect.begin(), dialect.end());
    out.insert(out.end(), address.wire.begin(), address.wire.end());
    return out;
}

Result<EndpointAddress> decode_address(std::span<const std::byte> bytes) {
    Front front{};
    if (Status s = take_front(bytes, address_magic, "address", front); !s.ok()) return s;
    if (front.length > bytes.size()) return Status{Code::protocol, "an address that ends too early"};
    EndpointAddress out;
    out.dialect.assign(reinterpret_cast<const char*>(bytes.data()), front.length);
    out.wire.assign(bytes.begin() + front.length, bytes.end());
    return out;
}

Bytes encode(const NetworkHandle& handle) {
    Bytes out;
    append(out, Front{handle_magic, version, static_cast<std::uint16_t>(handle.key.size())});
    append(out, Place{handle.region, handle.base, handle.bytes});
    out.insert(out.end(), handle.key.begin(), handle.key.end());
    return out;
}

Result<NetworkHandle> decode_handle(std::span<const std::byte> bytes) {
    Front front{};
    if (Status s = take_front(bytes, handle_magic, "memory handle", front); !s.ok()) return s;
    Place place{};
    if (bytes.size() != sizeof place + front.length)
        return Status{Code::protocol, fmt::format("a memory handle with {} bytes behind its front instead of {}",
                                                  bytes.size(), sizeof place + front.length)};
    std::memcpy(&place, bytes.data(), sizeof place);
    NetworkHandle out{place.region, place.base, place.bytes, {}};
    out.key.assign(bytes.begin() + sizeof place, bytes.end());
    return out;
}

}  // namespace npushmem::network
