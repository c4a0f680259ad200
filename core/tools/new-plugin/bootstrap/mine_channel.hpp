// SPDX-License-Identifier: BSD-3-Clause
// Messages between a rank and the hub of its job, over Unix stream sockets of one host.
#pragma once

#include <chrono>
#include <cstddef>
#include <cstdint>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include "npushmem/plugin/status.hpp"

namespace mine_plugin {

using npushmem::Code;
using npushmem::Result;
using npushmem::Status;
using Bytes = std::vector<std::byte>;
using Clock = std::chrono::steady_clock;
using Milliseconds = std::chrono::milliseconds;

enum class Kind : std::uint32_t {
    hello = 1,  // rank to hub, first: `rank`, and `bytes` is the number of ranks
    gather,     // rank to hub: its part; hub to rank: all parts, in order of rank
    barrier,    // rank to hub and back, without a payload
    abort,      // rank to hub: the payload is the reason
    failure,    // hub to rank: the job has failed with `code`; the payload is the cause
    bye,        // the sender leaves in an orderly manner; the end of a connection without it is a death
};

// Both ends run on one host: a header is a structure in the byte order of the host.
struct Header {
    std::uint32_t magic = 0x6d696e65;
    Kind kind{};
    std::int32_t rank = -1;
    std::int32_t code = 0;
    std::uint64_t bytes = 0;  // of the payload, except in a hello
};
inline constexpr std::uint64_t max_part = std::uint64_t{1} << 30;  // bytes of one rank

struct Message {
    Header header;
    Bytes payload;
};

Status system_failure(const std::string& what);

// One end of a connection. Owns the descriptor. For one thread at a time.
class Channel {
public:
    Channel() = default;
    explicit Channel(int descriptor) : descriptor_(descriptor) {}
    Channel(Channel&& other) noexcept
        : descriptor_(std::exchange(other.descriptor_, -1)), input_(std::move(other.input_)) {}
    Channel& operator=(Channel&& other) noexcept {
        std::swap(descriptor_, other.descriptor_);
        std::swap(input_, other.input_);
        return *this;
    }
    ~Channel();

    // `name` is in the system's abstract namespace, which needs no file.
    static Result<Channel> listen(const std::string& name);
    // Code::unreachable: nobody listens yet.
    static Result<Channel> connect(const std::string& name);
    // Accepts a connection of a process of the same user. No channel: nobody waits.
    [[nodiscard]] Channel accept() const;
    // A connection within this process.
    static Result<std::pair<Channel, Channel>> pair();

    // Sends all bytes before the deadline, else returns false: the peer has ended or reads nothing.
    bool send(Header header, std::span<const std::byte> payload, Clock::time_point deadline) const;
    // Receives what is there. `complete`: `message` is filled in. `closed`: the peer has ended, and all of its messages
    // have been received. `malformed`: it sends something else.
    enum class Received { complete, partial, closed, malformed };
    Received receive(Message& message);
    // Waits for input. Returns false at the deadline.
    [[nodiscard]] bool wait_readable(Clock::time_point deadline) const;

    [[nodiscard]] int descriptor() const { return descriptor_; }
    [[nodiscard]] bool is_open() const { return descriptor_ >= 0; }

private:
    [[nodiscard]] bool wait(short events, Clock::time_point deadline) const;

    int descriptor_ = -1;
    Bytes input_;  // of an incomplete message
};

// The milliseconds until the deadline for poll(); never negative.
int milliseconds_until(Clock::time_point deadline);

}  // namespace mine_plugin
