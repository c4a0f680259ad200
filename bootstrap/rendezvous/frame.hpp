// The unit of every conversation: a header, a tag that authenticates header and payload, a payload.
//
//   0 u32 magic   4 u16 protocol version   6 u16 type   8 u32 session   12 u32 payload bytes   16 u64 sequence
//  24 tag (16)   40 payload                                                         all integers little endian
//
// magic and version keep their places in every future version, so that two versions can tell each other apart.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <span>
#include <string_view>

#include "bootstrap/rendezvous/byte_writer.hpp"
#include "bootstrap/rendezvous/siphash.hpp"
#include "npushmem/plugin/status.hpp"

namespace npushmem::rendezvous {

constexpr std::uint16_t protocol_version = 1;

enum class FrameType : std::uint16_t {
    hello = 1,      // who connects: job and a nonce; the only frame without a tag
    challenge = 2,  // who accepted: a nonce, under the key that both nonces and the secret give
    join = 3,       // rank → service: who I am
    assign = 4,     // service → rank: the session's number and where the parent listens
    leave = 5,      // rank → service: all my links stand
    link = 6,       // child → parent: who I am
    up = 7,         // child → parent: a piece of a collective's data
    down = 8,       // parent → child: likewise
    abort = 9,      // anyone to anyone: the job failed, and why
    bye = 10,       // I close this link on purpose
};

[[nodiscard]] bool is_frame_type(std::uint16_t value);
// The longest payload that a frame of this type may have.
[[nodiscard]] std::size_t payload_limit(FrameType type);

struct Frame {
    FrameType type;
    Buffer payload;
};

struct FrameHeader {
    static constexpr std::size_t signed_bytes = 24;  // what the tag covers, beside the payload
    static constexpr std::size_t bytes = signed_bytes + sizeof(SipTag);
    using Encoded = std::array<std::byte, signed_bytes>;

    FrameType type;
    std::uint32_t session;
    std::uint32_t length;
    std::uint64_t sequence;
    SipTag tag{};

    // Without the tag.
    [[nodiscard]] Encoded encode() const;
    // Checks magic, version, type and length; Code::unsupported for a different version, else Code::protocol.
    static Result<FrameHeader> parse(std::span<const std::byte, bytes> from);
};

[[nodiscard]] SipTag sign(const SipKey& key, const FrameHeader& header, std::span<const std::byte> payload);

}  // namespace npushmem::rendezvous
