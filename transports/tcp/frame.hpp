// SPDX-License-Identifier: BSD-3-Clause
// What travels on a connection: the handshake of the side that has connected, the welcome of the other side, then
// frames of both. Layouts are fixed, in the sender's byte order; a receiver of the other byte order sees a wrong magic
// number.
//
//     from the side that has connected:  | Handshake 48 | after the welcome: frames ...
//     from the other side:               | welcome, a frame | frames ...
//     a frame:                           | FrameHeader 32 | FrameSignal 24, of write_signal only | `bytes` of payload |
#pragma once

#include <cstddef>
#include <cstdint>

#include "core/base/sip_hash.hpp"

namespace npushmem::tcp {

struct Handshake {
    static constexpr std::uint32_t magic_value = 0x4e505443;
    static constexpr std::uint16_t version_value = 2;

    std::uint32_t magic = magic_value;
    std::uint16_t version = version_value;
    std::uint16_t reserved = 0;
    std::int32_t pe = -1;  // the sender's
    std::uint32_t lane = 0;
    SipKey secret{};         // the receiver's, from its address: only PEs of its job know it
    SipKey sender_secret{};  // from the sender's address: a proof that the sender is that PE
};

enum class FrameKind : std::uint32_t {
    message = 1,   // payload: the message
    write,         // payload: the data
    write_signal,  // a write, then a signal, which sets a word
    read,          // no payload: answered by data, in the order of the reads
    data,          // answer of a read; payload: the bytes read, none if it failed
    refusal,       // answer of a write to memory that the receiver has not registered; it drops all later frames
    goodbye,       // the sender closes its transport normally
    welcome,       // the handshake is accepted: both sides may send operations
};

struct FrameHeader {
    FrameKind kind{};
    std::int32_t code = 0;  // of data and refusal: a Code
    std::uint64_t bytes = 0;
    std::uint64_t region = 0;  // of write, write_signal and read: the receiver's memory
    std::uint64_t offset = 0;
};

struct FrameSignal {
    std::uint64_t region = 0;
    std::uint64_t offset = 0;
    std::uint64_t value = 0;
};

// The maximum size of a message, headers included.
inline constexpr std::size_t max_message_bytes = 4096;

static_assert(sizeof(Handshake) == 48 && sizeof(FrameHeader) == 32 && sizeof(FrameSignal) == 24);

}  // namespace npushmem::tcp
