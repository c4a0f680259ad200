// What PEs tell each other so that a pair of queue pairs can be connected. Fixed layouts, sent as they are; a PE whose
// order of bytes differs sees a wrong magic number.
#pragma once

#include <array>
#include <cstdint>
#include <cstring>
#include <optional>
#include <span>

#include "npushmem/plugin/transport.hpp"

namespace npushmem::verbs {

// The address of a PE's port; exchanged at start.
struct PortAddress {
    static constexpr std::uint32_t magic_value = 0x4e565243;  // "NVRC"

    std::uint32_t magic = magic_value;
    std::uint8_t version = 3;
    std::uint8_t rail = 0;  // its number
    std::uint16_t lid = 0;
    std::array<std::uint8_t, 16> gid{};
    std::uint32_t handshake_qp = 0;  // number of the queue pair for connect messages
    std::uint8_t mtu = 0;            // ibv_mtu
    std::uint8_t max_rd_atomic = 1;  // that the PE serves
    std::uint8_t rail_given = 0;     // 1: the number is the user's
    std::uint8_t subnet_bits = 0;    // of the GID; 0: the subnet is unknown
    std::uint64_t nonce = 0;         // of this opening, so that nobody takes a message of another job for one of this
};

// One datagram. A request is repeated until it is answered; any of them may be lost, come twice or come late.
//
// Lane 0 is one pair for both directions, whoever asks first. The others carry only what one of the two sends, the one
// that asks; it counts how often it has made them anew, and what is older than what is known is late.
struct ConnectMessage {
    enum class Kind : std::uint32_t { request = 1, answer = 2, refusal = 3 };

    PortAddress from{};
    std::uint64_t to_nonce = 0;
    std::int32_t pe = -1;      // the sender
    std::uint32_t number = 0;  // of the sender's queue pair for this peer
    std::uint32_t initial_psn = 0;
    Kind kind = Kind::request;
    std::uint32_t lane = 0;
    std::uint32_t generation = 0;
};
static_assert(sizeof(PortAddress) == 40 && sizeof(ConnectMessage) == 72);

template <class Plain>
std::optional<Plain> plain_from(std::span<const std::byte> bytes) {
    if (bytes.size() != sizeof(Plain)) return std::nullopt;
    Plain out;
    std::memcpy(&out, bytes.data(), sizeof out);
    return out;
}

inline bool is_sound(const PortAddress& port_address) {
    constexpr unsigned gid_bits = 128;
    return port_address.magic == PortAddress::magic_value && port_address.version == PortAddress{}.version &&
           port_address.rail_given <= 1 && port_address.subnet_bits <= gid_bits;
}

inline std::optional<PortAddress> port_address_from(std::span<const std::byte> bytes) {
    const auto out = plain_from<PortAddress>(bytes);
    return out && is_sound(*out) ? out : std::nullopt;
}

inline std::optional<ConnectMessage> connect_message_from(std::span<const std::byte> bytes) {
    const auto out = plain_from<ConnectMessage>(bytes);
    if (!out || !is_sound(out->from)) return std::nullopt;
    const bool known = out->kind >= ConnectMessage::Kind::request && out->kind <= ConnectMessage::Kind::refusal;
    return known ? out : std::nullopt;
}

template <class Plain>
Bytes bytes_from(const Plain& plain) {
    const auto bytes = std::as_bytes(std::span(&plain, 1));
    return {bytes.begin(), bytes.end()};
}

// What wires tell each other over a connection, beside the transport's messages: the keys of chunks of memory.
struct KeyRequest {
    static constexpr std::uint32_t kind = 1;
    std::uint64_t region = 0;  // the owner's number
    std::uint64_t chunk = 0;
    std::uint64_t key = 0;  // the asker's number
};

struct KeyReply {
    static constexpr std::uint32_t kind = 2;
    std::uint64_t key = 0;
    std::uint64_t chunk = 0;
    std::uint32_t rkey = 0;
    std::int32_t code = 0;  // not ok: there is no key, and `why` says why
    std::array<char, 480> why{};
};

}  // namespace npushmem::verbs
