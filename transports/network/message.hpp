// SPDX-License-Identifier: BSD-3-Clause
// The messages between two PEs of one network transport. They ask the target's handler for operations that the network
// lacks. `queue` is the origin's number of the requesting queue: the handler keeps the failure of a request without an
// answer for this queue's next flush. Layouts are fixed, in the sender's byte order; a receiver of the other byte order
// sees a wrong magic number. The header's tag authenticates the message (MessageKeys).
//
//     | MessageHeader 16 | the rest of one of the structures below | payload |
//
// Without a longer payload a message has at most 64 bytes, because many networks send 64 bytes at once.
#pragma once

#include <cstddef>
#include <cstdint>
#include <cstring>
#include <optional>
#include <span>
#include <type_traits>

#include "npushmem/plugin/transport.hpp"

namespace npushmem::network {

enum class MessageKind : std::uint8_t {
    hello = 1,    // payload: the sender's key, then its address, for answers
    atomic,       // AtomicRequest
    put_signal,   // PutSignalRequest; payload: the data
    flush,        // FlushRequest: answered when all earlier requests are done
    answer,       // Answer
    ping,         // MessageHeader only; answered by pong
    pong,         // MessageHeader only
    put,          // PutRequest; payload: the data
    put_strided,  // PutStridedRequest; payload: the blocks, one after another
    goodbye,      // MessageHeader only: the sender closes its transport
};

struct MessageHeader {
    static constexpr std::uint16_t magic_value = 0x4e57;
    static constexpr std::uint8_t version_value = 5;

    std::uint16_t magic = magic_value;
    std::uint8_t version = version_value;
    MessageKind kind{};
    std::int32_t origin = -1;  // the sender's PE
    std::uint64_t tag = 0;     // under the receiver's key
};

struct AtomicRequest {
    MessageHeader head;
    std::uint64_t ticket = 0;  // of the answer; 0: no answer
    std::uint64_t region = 0;  // number at the target
    std::uint64_t offset = 0;
    std::uint64_t operand = 0;
    std::uint64_t compare = 0;
    std::uint8_t operation = 0;
    std::uint8_t width = 0;
    std::uint16_t reserved = 0;
    std::uint32_t queue = 0;
};

struct PutSignalRequest {
    MessageHeader head;
    std::uint64_t region = 0;
    std::uint64_t offset = 0;
    std::uint64_t signal_region = 0;
    std::uint64_t signal_offset = 0;
    std::uint64_t signal = 0;
    std::uint16_t bytes = 0;  // of the payload
    std::uint8_t operation = 0;
    std::uint8_t reserved = 0;
    std::uint32_t queue = 0;
};

struct PutRequest {
    MessageHeader head;
    std::uint64_t region = 0;
    std::uint64_t offset = 0;
    std::uint16_t bytes = 0;  // of the payload
    std::uint16_t reserved = 0;
    std::uint32_t queue = 0;
};

struct PutStridedRequest {
    MessageHeader head;
    std::uint64_t region = 0;
    std::uint64_t offset = 0;
    std::uint64_t stride = 0;  // bytes between the beginnings of blocks
    std::uint16_t bytes = 0;   // of a block
    std::uint16_t count = 0;
    std::uint32_t queue = 0;
};

struct FlushRequest {
    MessageHeader head;
    std::uint64_t ticket = 0;
    std::uint32_t queue = 0;
    std::uint32_t reserved = 0;
};

struct Answer {
    MessageHeader head;
    std::uint64_t ticket = 0;
    std::uint64_t value = 0;
    std::int32_t code = 0;
    std::uint32_t reserved = 0;
};

static_assert(sizeof(MessageHeader) == 16 && sizeof(AtomicRequest) == 64 && sizeof(PutSignalRequest) == 64);
static_assert(sizeof(PutRequest) == 40 && sizeof(FlushRequest) == 32 && sizeof(Answer) == 40);
static_assert(sizeof(PutStridedRequest) == 48 && NPUSHMEM_PUT_STRIDED_MAX <= UINT16_MAX);

// The header of the message; empty when the bytes are not a message of this version.
inline std::optional<MessageHeader> parse_header(std::span<const std::byte> message) {
    MessageHeader head;
    if (message.size() < sizeof head) return std::nullopt;
    std::memcpy(&head, message.data(), sizeof head);
    const bool known = head.kind >= MessageKind::hello && head.kind <= MessageKind::goodbye;
    if (head.magic != MessageHeader::magic_value || head.version != MessageHeader::version_value || !known)
        return std::nullopt;
    return head;
}

// The message as one of the structures above; empty when it is too short.
template <class Message>
std::optional<Message> message_as(std::span<const std::byte> message) {
    static_assert(std::is_trivially_copyable_v<Message>);
    Message out;
    if (message.size() < sizeof out) return std::nullopt;
    std::memcpy(&out, message.data(), sizeof out);
    return out;
}

// A message from PE `origin` whose other fields the caller sets.
template <class Message>
Message make_message(MessageKind kind, int origin) {
    Message out;
    if constexpr (std::is_same_v<Message, MessageHeader>) {
        out.kind = kind;
        out.origin = origin;
    } else {
        out.head.kind = kind;
        out.head.origin = origin;
    }
    return out;
}

template <class Message>
std::span<const std::byte> bytes_of(const Message& message) {
    return std::as_bytes(std::span(&message, 1));
}

}  // namespace npushmem::network
