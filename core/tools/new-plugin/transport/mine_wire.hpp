// SPDX-License-Identifier: BSD-3-Clause
// The messages between two PEs, and the interface of the connection that carries them.
//
// A PE that starts operations connects to its target once. It sends requests over this connection and receives replies.
// Both PEs run on one host, so a message is a structure in the byte order of the host.
#pragma once

#include <cstddef>
#include <cstdint>
#include <cstring>
#include <span>

#include "npushmem/plugin/transport.hpp"

namespace mine_plugin {

using npushmem::Bytes;
using npushmem::Code;
using npushmem::Result;
using npushmem::Status;

enum class Kind : std::uint32_t {
    hello = 1,  // the first message of a connection: `pe` is the sender, `operand` the secret of the target's address
    put,        // followed by `bytes` bytes for the region
    get,        // the reply is followed by `bytes` bytes of the region
    atomic,     // the reply of a fetching operation is followed by the old value
    signal,     // `operation` is NPUSHMEM_SIGNAL_x
    reply,      // `code` is the result of the request, and of requests without a reply that came before it
    bye,        // the sender closes the connection; a Connection sends and receives this message by itself
};

inline constexpr std::uint32_t message_magic = 0x4d494e45;

struct Header {
    std::uint32_t magic = message_magic;
    Kind kind{};
    std::uint64_t region = 0;
    std::uint64_t offset = 0;
    std::uint64_t bytes = 0;
    std::uint64_t operand = 0;
    std::uint64_t compare = 0;
    std::int32_t pe = -1;
    std::int32_t code = 0;
    std::uint8_t operation = 0;
    std::uint8_t width = 0;
    std::uint8_t wants_reply = 0;
    std::uint8_t reserved[5] = {};
};
static_assert(sizeof(Header) == 64, "a message's header has no padding");

// Largest number of bytes that follow a header.
inline constexpr std::uint64_t max_piece = 128 * 1024;
// Receive buffers have one byte more than a valid message, so that a longer one is detected.
inline constexpr std::size_t receive_buffer_bytes = sizeof(Header) + max_piece + 1;

// Returns the header of a received message and its payload; false if it is malformed.
inline bool parse(std::span<const std::byte> message, Header& header, std::span<const std::byte>& payload) {
    if (message.size() < sizeof header) return false;
    std::memcpy(&header, message.data(), sizeof header);
    payload = message.subspan(sizeof header);
    return header.magic == message_magic && header.kind >= Kind::hello && header.kind <= Kind::bye;
}

// Returns whether `bytes` bytes at `offset` are inside an object of `size` bytes; no sum can overflow.
constexpr bool fits(std::uint64_t offset, std::uint64_t bytes, std::uint64_t size) {
    return offset <= size && bytes <= size - offset;
}

// One end of a connection: whole messages in both directions, in order. A fake of it is in tests/fake_connection.hpp.
// One thread at a time sends and watches; one thread at a time receives, possibly while another one sends.
class Connection {
public:
    Connection() = default;
    Connection(const Connection&) = delete;
    Connection& operator=(const Connection&) = delete;
    // Ends the connection. The peer takes this for the death of this PE unless `close` was called.
    virtual ~Connection() = default;

    enum class Sent { yes, full, closed };
    // Sends one message, or nothing. Does not wait.
    virtual Sent send(const Header& header, std::span<const std::byte> payload) = 0;

    // closed, broken: all messages were received, and the peer has called `close`, or has ended without it.
    enum class Received { message, none, closed, broken };
    // Receives one message into `buffer`, which is larger than any valid message. Does not wait.
    virtual Received receive(std::span<std::byte> buffer, std::size_t& bytes) = 0;

    // Selects the condition under which SocketWire::wait reports this connection; `input` at first.
    enum class Interest { input, room, both };
    virtual void watch(Interest interest) = 0;

    // Announces the end of the connection to the peer. Waits at most a second for room, and discards all input.
    virtual void close() = 0;
};

}  // namespace mine_plugin
