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

// Where a PE can be greeted: its address at start.
struct Contact {
    static constexpr std::uint32_t magic_value = 0x4e565243;  // "NVRC"

    std::uint32_t magic = magic_value;
    std::uint8_t version = 3;
    std::uint8_t rail = 0;  // its number
    std::uint16_t lid = 0;
    std::array<std::uint8_t, 16> gid{};
    std::uint32_t greeter = 0;       // number of the queue pair for greetings
    std::uint8_t mtu = 0;            // ibv_mtu
    std::uint8_t reads_at_once = 1;  // that the PE serves
    std::uint8_t rail_given = 0;     // 1: the number is the user's
    std::uint8_t subnet_bits = 0;    // of the GID; 0: the subnet is unknown
    std::uint64_t nonce = 0;         // of this opening, so that nobody takes a greeting of another job for one of this
};

// One datagram. A request is repeated until it is answered; any of them may be lost, come twice or come late.
//
// Lane 0 is one pair for both directions, whoever asks first. The others carry only what one of the two sends, the one
// that asks; it counts how often it has made them anew, and what is older than what is known is late.
struct Greeting {
    enum class Kind : std::uint32_t { request = 1, answer = 2, refusal = 3 };

    Contact from{};
    std::uint64_t to_nonce = 0;
    std::int32_t pe = -1;      // the sender
    std::uint32_t number = 0;  // of the sender's queue pair for this peer
    std::uint32_t first_packet = 0;
    Kind kind = Kind::request;
    std::uint32_t lane = 0;
    std::uint32_t generation = 0;
};
static_assert(sizeof(Contact) == 40 && sizeof(Greeting) == 72);

template <class Plain>
std::optional<Plain> plain_from(std::span<const std::byte> bytes) {
    if (bytes.size() != sizeof(Plain)) return std::nullopt;
    Plain out;
    std::memcpy(&out, bytes.data(), sizeof out);
    return out;
}

inline bool is_sound(const Contact& contact) {
    constexpr unsigned gid_bits = 128;
    return contact.magic == Contact::magic_value && contact.version == Contact{}.version && contact.rail_given <= 1 &&
           contact.subnet_bits <= gid_bits;
}

inline std::optional<Contact> contact_from(std::span<const std::byte> bytes) {
    const auto out = plain_from<Contact>(bytes);
    return out && is_sound(*out) ? out : std::nullopt;
}

inline std::optional<Greeting> greeting_from(std::span<const std::byte> bytes) {
    const auto out = plain_from<Greeting>(bytes);
    if (!out || !is_sound(out->from)) return std::nullopt;
    const bool known = out->kind >= Greeting::Kind::request && out->kind <= Greeting::Kind::refusal;
    return known ? out : std::nullopt;
}

template <class Plain>
Bytes bytes_from(const Plain& plain) {
    const auto bytes = std::as_bytes(std::span(&plain, 1));
    return {bytes.begin(), bytes.end()};
}

}  // namespace npushmem::verbs
