// SPDX-License-Identifier: BSD-3-Clause
// Frames on the wire, and the connection that carries them.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <initializer_list>
#include <optional>
#include <span>
#include <string_view>

#include "bootstrap/rendezvous/authentication.hpp"
#include "core/base/bytes.hpp"
#include "core/base/socket.hpp"
#include "npushmem/plugin/status.hpp"

namespace npushmem::rendezvous {

// The unit of the protocol: a header, a tag that authenticates header and payload, a payload.
//
//   0 u32 magic   4 u16 protocol version   6 u16 type   8 u32 session   12 u32 payload bytes   16 u64 sequence
//  24 tag (16)   40 payload                                                         all integers little endian
//
// magic and version keep their offsets in every future version, so that two versions can detect each other.

constexpr std::uint16_t protocol_version = 1;

enum class FrameType : std::uint16_t {
    hello = 1,      // connector → acceptor: job and a nonce; the only frame without a tag
    challenge = 2,  // acceptor → connector: a nonce, signed with the key from both nonces and the secret
    join = 3,       // rank → service: identity
    assign = 4,     // service → rank: the session's number and the parent's address
    leave = 5,      // rank → service: all links are connected
    link = 6,       // child → parent: identity
    up = 7,         // child → parent: a piece of a collective's data
    down = 8,       // parent → child: likewise
    abort = 9,      // any → any: the job failed, and why
    bye = 10,       // the sender closes this link on purpose
};

[[nodiscard]] bool is_frame_type(std::uint16_t value);
// The longest payload that a frame of this type may have.
[[nodiscard]] std::size_t payload_limit(FrameType type);

struct Frame {
    FrameType type;
    Buffer payload;
};

struct FrameHeader {
    static constexpr std::size_t signed_bytes = 24;  // covered by the tag, together with the payload
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

// A connection that carries frames and never waits: it queues the bytes that it cannot send. Until secure() is called
// it carries hello and challenge only; from then on every frame is signed, and a frame that fails verification is an
// error.
class Channel {
public:
    using Parts = std::initializer_list<std::span<const std::byte>>;
    enum class Input { some, nothing, end };

    // `session` is written into every frame and expected in every frame. `longest_payload` limits the memory for a
    // peer's frames, below the limits of the frame types.
    Channel(Socket socket, std::uint32_t session, std::size_t longest_payload);

    [[nodiscard]] const Socket& socket() const { return socket_; }
    [[nodiscard]] int fd() const { return socket_.fd(); }

    void secure(const SipKey& sending, const SipKey& receiving);
    void allow_payload(std::size_t longest) { longest_payload_ = longest; }

    // Queues one frame for flush().
    void queue(FrameType type, Parts payload);
    // Sends as much as the socket takes. A closed connection drops the rest; reading then reports why it closed.
    void flush();
    [[nodiscard]] std::size_t queued() const { return out_.size() - sent_; }
    // The peer accepts no more bytes.
    [[nodiscard]] bool send_closed() const { return send_closed_; }

    // Receives the bytes that have arrived, at most about one frame.
    Input fill();
    // Returns the next whole frame, verified; none if it has not arrived yet; an error if verification fails.
    Result<std::optional<Frame>> next();
    // Returns the payload of the next whole frame before its tag is checked: the key depends on the challenge's
    // payload.
    Result<std::optional<Frame>> peek() const;

    // Sends the queued bytes as far as possible without waiting, and ends the stream.
    void finish();

private:
    [[nodiscard]] Result<std::optional<FrameHeader>> header() const;
    [[nodiscard]] Status verify(const FrameHeader& header, std::span<const std::byte> payload) const;
    [[nodiscard]] std::span<const std::byte> unread() const { return std::span(in_).subspan(taken_); }
    [[nodiscard]] std::size_t missing_bytes() const;

    Socket socket_;
    std::uint32_t session_;
    std::size_t longest_payload_;
    std::optional<SipKey> send_key_;
    std::optional<SipKey> receive_key_;
    std::uint64_t send_sequence_ = 0;
    std::uint64_t receive_sequence_ = 0;
    bool send_closed_ = false;
    Buffer out_;
    std::size_t sent_ = 0;  // bytes of out_ that were sent
    Buffer in_;
    std::size_t taken_ = 0;  // bytes of in_ that next() has returned
};

}  // namespace npushmem::rendezvous
