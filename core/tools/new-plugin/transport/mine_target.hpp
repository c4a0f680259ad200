// SPDX-License-Identifier: BSD-3-Clause
// The target's side: the registered memory of this PE, and the connections over which peers request operations on it.
#pragma once

#include <cstdint>
#include <map>
#include <memory>
#include <mutex>
#include <span>
#include <utility>

#include "mine_wire.hpp"

namespace mine_plugin {

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
// At most one reply waits for room in the connection. Until it is sent, no further request is read: a peer that reads
// no replies stops itself, and this PE needs no more memory than one message.
class Responder {
public:
    Responder(std::unique_ptr<Connection> connection, Regions& regions, std::uint64_t secret)
        : connection_(std::move(connection)), regions_(regions), secret_(secret) {}

    // Sends a waiting reply, then receives and executes requests. `buffer` is scratch memory for one message.
    // ok: the connection is open; unreachable: the peer has closed it, or never said hello; peer_dead: the peer has
    // ended without closing it; protocol: a message is malformed.
    Code progress(std::span<std::byte> buffer);

    // -1 before the hello.
    [[nodiscard]] int pe() const { return pe_; }
    void close() { connection_->close(); }

private:
    bool handle(std::span<const std::byte> message);
    bool send_reply();

    std::unique_ptr<Connection> connection_;
    Regions& regions_;
    std::uint64_t secret_;
    int pe_ = -1;
    Code failure_ = Code::ok;  // the first one since the last reply
    Header reply_;
    Bytes reply_payload_;
    bool reply_waits_ = false;
};

}  // namespace mine_plugin
