// SPDX-License-Identifier: BSD-3-Clause
// The target's side: the registered memory of this PE, and the connections over which peers request operations on it.
#pragma once

#include <cstdint>
#include <map>
#include <mutex>
#include <span>

#include "mine_wire.hpp"

namespace mine_plugin {

// The registered memory. Any thread.
class Regions {
public:
    // Returns the region's number. Numbers are never reused, so a request that names a former region is refused.
    std::uint64_t add(const npushmem_memory& memory);
    // Returns when no request accesses the region any more; false if there is no such region.
    bool remove(std::uint64_t region);
    // Executes a request. `reply` receives the bytes of a get or the old value of a fetching atomic.
    // Code::argument: an unknown region, operation, width or alignment; Code::range: outside the region.
    Code execute(const Header& request, std::span<const std::byte> payload, Bytes& reply);

private:
    struct Region {
        std::byte* base;
        std::uint64_t bytes;
    };
    std::mutex mutex_;  // held while a request accesses a region
    std::map<std::uint64_t, Region> regions_;
    std::uint64_t last_region_ = 0;
};

// One peer's connection. For one thread at a time.
//
// At most one reply waits for room in the socket. Until it is sent, no further request is read: a peer that reads no
// replies stops itself, and this PE needs no more memory than one message.
class Responder {
public:
    Responder(Socket socket, Regions& regions, std::uint64_t secret)
        : socket_(std::move(socket)), regions_(regions), secret_(secret) {}

    enum class State {
        open,
        closed,     // with a bye, or by a process that had not said hello
        dead,       // without a bye
        malformed,  // a message is not valid
    };
    // Sends a waiting reply, then receives and executes requests. `buffer` is scratch memory for one message.
    State progress(std::span<std::byte> buffer);

    [[nodiscard]] bool has_unsent_reply() const { return reply_waits_; }
    // -1 before the hello.
    [[nodiscard]] int pe() const { return pe_; }
    [[nodiscard]] const Socket& socket() const { return socket_; }

private:
    bool handle(std::span<const std::byte> message);
    bool send_reply();

    Socket socket_;
    Regions& regions_;
    std::uint64_t secret_;
    int pe_ = -1;
    bool said_bye_ = false;
    Code failure_ = Code::ok;  // the first one since the last reply
    Header reply_;
    Bytes reply_payload_;
    bool reply_waits_ = false;
};

}  // namespace mine_plugin
