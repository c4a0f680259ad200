// SPDX-License-Identifier: BSD-3-Clause
// The socket between the launcher and the supervisor: whole messages, some with descriptors. The end of the socket
// reports to either side that the other has ended.
#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "core/base/poller.hpp"
#include "npushmem/plugin/status.hpp"

namespace npushmem::run {

enum class MessageKind : std::int32_t {
    start,          // launcher → supervisor; payload: NAME=value\0..., variables that were not known before
    signal,         // launcher → supervisor: value is sent to every PE that runs
    flush_exits,    // launcher → supervisor: answered by `exits_flushed` when every end up to now has been reported
    started,        // supervisor → launcher: pe, pid; descriptors: stdout and stderr when output is piped
    start_failed,   // supervisor → launcher: pe; value: errno; payload: the attempted call
    ended,          // supervisor → launcher: pe, pid, value, termination
    exits_flushed,  // supervisor → launcher
};

struct Message {
    MessageKind kind = MessageKind::start;
    std::int32_t pe = -1;
    std::int32_t pid = -1;
    std::int32_t value = 0;
    std::int32_t termination = 0;  // TerminationKind
};

struct Received {
    enum class State { message, nothing, closed } state = State::nothing;
    Message message;
    std::string payload;
    std::vector<FileDescriptor> descriptors;
};

class Channel {
public:
    static constexpr std::size_t max_payload = 65536;
    static constexpr std::size_t max_descriptors = 2;

    static Result<std::pair<Channel, Channel>> pair();

    // False: the other side has ended. Waits while the socket's buffer is full.
    bool send(const Message& message, std::string_view payload = {}, std::span<const int> descriptors = {}) const;
    // `wait`: waits for the next message or the end. Otherwise State::nothing if no message has arrived.
    [[nodiscard]] Received receive(bool wait) const;

    [[nodiscard]] int fd() const { return socket_.get(); }
    void close() { socket_.reset(); }

private:
    explicit Channel(FileDescriptor socket) : socket_(std::move(socket)) {}

    FileDescriptor socket_;
};

}  // namespace npushmem::run
