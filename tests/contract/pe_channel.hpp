// SPDX-License-Identifier: BSD-3-Clause
// Messages between the process of a case and the process of a PE.
#pragma once

#include <cstddef>
#include <cstdint>
#include <cstring>
#include <optional>
#include <string>
#include <string_view>
#include <utility>

#include "tests/contract/case_process.hpp"
#include "tests/contract/pe.hpp"

namespace npushmem::contract {

struct PeMessage {
    enum class Kind : char { stage = 's', connect_info = 'c', go = 'g' };
    Kind kind;
    std::string content;
};

// One end of a socket that keeps the borders of messages.
class PeChannel {
public:
    explicit PeChannel(Descriptor socket) : socket_(std::move(socket)) {}
    // The two ends. Throws std::runtime_error.
    static std::pair<PeChannel, PeChannel> make_pair();

    [[nodiscard]] int descriptor() const { return socket_.get(); }
    // Returns false if the other side has closed its end. Throws std::runtime_error if the message is too long.
    bool send(const PeMessage& message) const;
    // Returns nothing if there is no message yet, or if the other side has closed its end: then is_closed().
    std::optional<PeMessage> receive();
    [[nodiscard]] bool is_closed() const { return socket_.get() < 0; }
    void close() { socket_.close(); }
    // Waits until receive() returns a message, or the other side has closed its end.
    void wait() const;

private:
    Descriptor socket_;
};

// What a PE's peers need to connect, as the content of a message.
struct PeConnectInfo {
    std::int32_t pe = -1;
    std::int32_t process = -1;
    Pe::ConnectInfo info;

    // Describes this PE under the given number. Refers to `info`.
    [[nodiscard]] npushmem_peer peer(int number) const;
};
std::string encode(const PeConnectInfo& info);
PeConnectInfo decode_connect_info(std::string_view content);

}  // namespace npushmem::contract
