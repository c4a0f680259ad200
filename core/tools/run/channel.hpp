// The socket between the launcher and the supervisor: whole messages, with descriptors attached where a message hands
// them over. Either side learns of the other's end, however it came, by the socket's end.
#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "core/tools/run/fd.hpp"
#include "npushmem/plugin/status.hpp"

namespace npushmem::run {

enum class MessageKind : std::int32_t {
    start,          // launcher → supervisor; payload: NAME=value\0..., variables known only now
    signal,         // launcher → supervisor: value is sent to every PE that runs
    flush_exits,    // launcher → supervisor: answered by `exits_flushed` when every end up to now has been reported
    started,        // supervisor → launcher: pe, pid; descriptors: stdout and stderr when output is piped
    start_failed,   // supervisor → launcher: pe; value: errno; payload: what was attempted
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
    std::vector<Fd> descriptors;
};

class Channel {
public:
    static constexpr std::size_t max_payload = 65536;
    static constexpr std::size_t max_descriptors = 2;

    static Result<std::pair<Channel, Channel>> pair();

    // False: the other side is gone. Waits while the socket's buffer is full.
    bool send(const Message& message, std::string_view payload = {}, std::span<const int> descriptors = {}) const;
    // `wait`: for the next message or the end; otherwise State::nothing when there is none yet.
    [[nodiscard]] Received receive(bool wait) const;

    [[nodiscard]] int fd() const { return socket_.get(); }
    void close() { socket_.reset(); }

private:
    explicit Channel(Fd socket) : socket_(std::move(socket)) {}

    Fd socket_;
};

}  // namespace npushmem::run
