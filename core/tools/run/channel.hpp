// The socket between the launcher and the keeper: whole messages, with descriptors attached where a message hands them
// over. Either side learns of the other's end, however it came, by the socket's end.
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
    start,         // launcher → keeper; payload: NAME=value\0..., variables known only now
    signal,        // launcher → keeper: value is sent to every PE that runs
    look,          // launcher → keeper: answered by `looked` when every end up to now has been reported
    started,       // keeper → launcher: pe, pid; descriptors: stdout and stderr when output is piped
    start_failed,  // keeper → launcher: pe; value: errno; payload: what was attempted
    ended,         // keeper → launcher: pe, pid, value, how
    looked,        // keeper → launcher
};

struct Message {
    MessageKind kind = MessageKind::start;
    std::int32_t pe = -1;
    std::int32_t pid = -1;
    std::int32_t value = 0;
    std::int32_t how = 0;  // HowEnded
};

struct Received {
    enum class State { message, nothing, closed } state = State::nothing;
    Message message;
    std::string payload;
    std::vector<Fd> descriptors;
};

class Channel {
public:
    static constexpr std::size_t most_payload = 65536;
    static constexpr std::size_t most_descriptors = 2;

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
