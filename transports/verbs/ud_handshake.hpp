// SPDX-License-Identifier: BSD-3-Clause
// Sends and receives connect messages, as datagrams that may be lost.
#pragma once

#include <array>
#include <cstdint>
#include <cstring>
#include <map>
#include <memory>
#include <optional>
#include <span>

#include "npushmem/plugin/transport.hpp"
#include "transports/verbs/local_memory.hpp"

namespace npushmem::verbs {

// Messages between the wires of two PEs: connect messages, by which queue pairs are connected, and key requests.
// Layouts are fixed and sent as they are; a PE of the other byte order sees a wrong magic number.

// The address of a PE's port, published at start: it receives connect messages there.
struct PortAddress {
    static constexpr std::uint32_t magic_value = 0x4e565243;  // "NVRC"

    std::uint32_t magic = magic_value;
    std::uint8_t version = 3;
    std::uint8_t rail = 0;  // number of its rail
    std::uint16_t lid = 0;
    std::array<std::uint8_t, 16> gid{};
    std::uint32_t handshake_qp = 0;  // number of the queue pair for connect messages
    std::uint8_t mtu = 0;            // ibv_mtu
    std::uint8_t max_rd_atomic = 1;  // reads and atomics that the PE serves at a time
    std::uint8_t rail_given = 0;     // 1: the user has set the rail
    std::uint8_t subnet_bits = 0;    // prefix length of the GID's subnet; 0: unknown
    std::uint64_t nonce = 0;         // of this opening: detects messages of other jobs
};

// One datagram. A request is repeated until it is answered. Any datagram may be lost, duplicated or late.
//
// Lane 0 is one pair of queue pairs for both directions, whichever PE requests it first. The other lanes carry data
// only from the PE that requested them; it counts their generations, and messages of an older generation are late.
struct ConnectMessage {
    enum class Kind : std::uint32_t { request = 1, answer = 2, refusal = 3 };

    PortAddress from{};
    std::uint64_t to_nonce = 0;
    std::int32_t pe = -1;      // the sender
    std::uint32_t number = 0;  // number of the sender's queue pair for this peer
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

// Wires request the keys of memory chunks over a connection, besides the transport's messages.
struct KeyRequest {
    static constexpr std::uint32_t kind = 1;
    std::uint64_t region = 0;  // number at the owner
    std::uint64_t chunk = 0;
    std::uint64_t key = 0;  // number at the requester
};

struct KeyReply {
    static constexpr std::uint32_t kind = 2;
    std::uint64_t key = 0;
    std::uint64_t chunk = 0;
    std::uint32_t rkey = 0;
    std::int32_t code = 0;  // not ok: there is no key; `why` gives the reason
    std::array<char, 480> why{};
};

class UdHandshake {
public:
    // `port` outlives this object.
    static Result<std::unique_ptr<UdHandshake>> open(OpenedPort& port);

    [[nodiscard]] std::uint32_t number() const { return pair_->qp_num; }
    // The maximum number of its outstanding completions.
    static constexpr int max_completions = 96;
    // Without room the message counts as lost. An error means that there is no route to the peer.
    Status send(const PortAddress& to, const ConnectMessage& message);
    // The message of a handshake_receive completion; empty when it is not a message of this job.
    std::optional<ConnectMessage> received(const ibv_wc& completion);
    // Handles a handshake_send completion.
    void sent(const ibv_wc& completion);

private:
    static constexpr std::size_t receives = 64;
    static constexpr std::size_t sends = 32;
    static constexpr std::size_t route_header_bytes = 40;  // before every datagram
    static constexpr std::uint32_t key = 0x4e505348;       // Q_Key of npushmem's datagrams

    explicit UdHandshake(OpenedPort& port) : port_(port) {}
    Status make_pair();
    Status make_ready();
    Status post_receive(std::size_t index);
    Result<ibv_ah*> address_handle_for(const PortAddress& peer);

    OpenedPort& port_;
    std::unique_ptr<BufferPool> incoming_;
    std::unique_ptr<BufferPool> outgoing_;
    Owned<ibv_qp> pair_;
    std::map<std::uint64_t, Owned<ibv_ah>> address_handles_;  // by the peer's nonce
};

}  // namespace npushmem::verbs
