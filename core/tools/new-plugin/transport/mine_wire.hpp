// SPDX-License-Identifier: BSD-3-Clause
// The messages between two PEs, the bytes that PEs exchange before (addresses and memory handles), and sockets.
//
// A PE that starts operations connects to its target once. It sends requests over this connection and receives replies.
// Sockets of type SOCK_SEQPACKET keep the borders of messages and their order. Both PEs run on one host, so a message
// is a structure in the byte order of the host.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <string>
#include <utility>

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
    bye,        // the sender closes the connection; the end of a connection without it is the sender's death
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

// Largest number of bytes that follow a header. The default room of a Unix socket holds a message of this size.
inline constexpr std::uint64_t max_piece = 128 * 1024;
// Receive buffers have one byte more than a valid message, so that a longer one is detected.
inline constexpr std::size_t receive_buffer_bytes = sizeof(Header) + max_piece + 1;

// A PE's address: the name of its socket in the system's abstract namespace, which needs no file, and a secret that a
// connection must present. Only PEs that received the address from the bootstrap know the secret.
struct Address {
    char name[96] = {};
    std::uint64_t secret = 0;

    static Result<Address> decode(const npushmem_peer& peer);
    [[nodiscard]] Bytes encode() const;
};

// Registered memory, as its owner describes it to peers. The checksum detects damaged handles.
struct Handle {
    std::uint64_t region = 0;
    std::uint64_t bytes = 0;
    std::uint64_t pe = 0;
    std::uint64_t checksum = 0;

    // Code::protocol if the bytes are no handle of this transport, Code::argument if it belongs to another PE.
    static Result<Handle> decode(std::span<const std::byte> bytes, int pe);
    [[nodiscard]] Bytes encode() const;
};

// Returns whether `bytes` bytes at `offset` are inside an object of `size` bytes; no sum can overflow.
constexpr bool fits(std::uint64_t offset, std::uint64_t bytes, std::uint64_t size) {
    return offset <= size && bytes <= size - offset;
}

// "<what>: <the system's text for errno>"
Status system_failure(const std::string& what);

// Owns a descriptor of a socket, or of epoll or an event. Closed on exec, so that a program that the PE starts keeps no
// connection open.
class Socket {
public:
    Socket() = default;
    explicit Socket(int descriptor) : descriptor_(descriptor) {}
    Socket(Socket&& other) noexcept : descriptor_(std::exchange(other.descriptor_, -1)) {}
    Socket& operator=(Socket&& other) noexcept {
        std::swap(descriptor_, other.descriptor_);
        return *this;
    }
    ~Socket();

    // Listens under a new name; fills the address.
    static Result<Socket> listen(Address& address);
    // Connects and sends the hello. Waits at most 10 s for the target to accept.
    static Result<Socket> connect(const Address& address, int own_pe, std::uint64_t piece);
    // Accepts a connection of a process of the same user. No socket: nobody waits, or a process of another user.
    [[nodiscard]] Socket accept(std::uint64_t piece) const;

    [[nodiscard]] int descriptor() const { return descriptor_; }
    [[nodiscard]] bool is_open() const { return descriptor_ >= 0; }

    // Neither of these waits, and neither raises SIGPIPE.
    enum class Sent { yes, full, closed };
    [[nodiscard]] Sent send(const Header& header, const void* payload, std::size_t bytes) const;
    // Receives one message into `buffer`, which is larger than any valid message. `closed`: the peer has closed the
    // connection, and all of its messages have been received.
    enum class Received { message, none, closed };
    Received receive(std::span<std::byte> buffer, std::size_t& bytes) const;
    // Sends the bye; waits at most a second for room, and discards what arrives meanwhile.
    void say_goodbye() const;

private:
    int descriptor_ = -1;
};

// Returns the header of a received message and its payload; false if it is malformed.
bool parse(std::span<const std::byte> message, Header& header, std::span<const std::byte>& payload);

// Waits for several descriptors. Each has a key, which the caller chooses. Any thread.
class Poller {
public:
    static constexpr int max_ready = 32;

    static Result<Poller> make();
    enum class Interest { input, room, both };
    // Reports the key when input or the end of the connection can be received.
    Status add(int descriptor, std::uint64_t key) const;
    // Reports the key in future when there is input, room to send, or one of them.
    void watch(int descriptor, std::uint64_t key, Interest interest) const;
    void remove(int descriptor) const;
    // Fills in the keys; returns their number. timeout_ms: 0 does not wait, -1 waits without limit.
    int wait(std::span<std::uint64_t, max_ready> keys, int timeout_ms) const;

private:
    explicit Poller(Socket epoll) : epoll_(std::move(epoll)) {}

    Socket epoll_;
};

}  // namespace mine_plugin
