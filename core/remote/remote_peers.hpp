// SPDX-License-Identifier: BSD-3-Clause
// The unmapped PEs, shared by all contexts. The first context that uses a PE connects to it and imports its memory,
// through its transport.
//
// Any thread may call it. One lock serializes set-up; another serializes progress and error polling. Data-path calls,
// on queues of different contexts, need neither.
#pragma once

#include <functional>
#include <mutex>
#include <set>
#include <span>
#include <vector>

#include "core/base/parse.hpp"
#include "core/base/wait.hpp"
#include "core/map/transport_map.hpp"

namespace npushmem {

// The peers' addresses, from the exchange at start-up.
struct PeerDirectory {
    std::function<npushmem_peer(int transport, int pe)> peer;
    std::function<std::span<const std::byte>(int transport, int pe)> handle;  // of the peer's slice
};

class RemotePeers {
public:
    // A connection to a PE for one user.
    struct Link {
        int pe = -1;
        int transport = -1;
        std::uint64_t remote = 0;  // the PE's slice, imported
        std::uint64_t queue = 0;   // used by this user only
    };

    // All references outlive this. `timeout` 0: none.
    RemotePeers(std::span<const NamedTransport> transports, const TransportMap& map, PeerDirectory directory,
                const Waiter& waiter, Duration timeout);
    RemotePeers(const RemotePeers&) = delete;
    RemotePeers& operator=(const RemotePeers&) = delete;
    // Releases imported memory. All links must be closed.
    ~RemotePeers();

    // Connects to the PE if no context has, and creates a queue.
    Result<Link> open(int pe);
    // Destroys the queue; cancels its outstanding operations.
    void close(const Link& link);
    // Maps a peer's slice, for transports that map; needs no queue. Where the transport finds the slice at `place`,
    // this PE has mapped it by itself: nothing is kept for it.
    Result<void*> map(int pe, const void* place);

    // The PE has died or finalized: its transport ends the outstanding operations to it, which then fail, and closes
    // the connection, also one that only the PE has used. Calls after the first success have no effect.
    void forget(int pe);

    // Returns the PEs that a context has used, and those that are mapped elsewhere.
    [[nodiscard]] std::vector<int> connected();

    // Drives progress of all transports in use; returns at once when another thread does.
    void progress_transports();
    // The same; returns the first asynchronous error, if any.
    Status progress();
    // Returns the first asynchronous error of these transports, one bit each, if any.
    Status events_of(std::uint64_t transports);
    // Describes why `what` failed with `code` on a link, with the transport's own message if it has one.
    Status failure_of(const Link& link, const char* what, Code code);
    // Fails with Code::unsupported when the PE's transport does not support this operation.
    [[nodiscard]] Status supports(const npushmem_atomic& op) const;
    // Sets the function that receives the PE and the code of each asynchronous error, and returns whether that is all:
    // the caller that polled the event gets no failure. It is called with a lock held. Set it before the first
    // operation.
    void on_event(std::function<bool(int pe, Code code)> listener) { listener_ = std::move(listener); }
    // Sets the function that returns whether a PE's death is known to the program: a fence or quiet over all PEs does
    // not fail because of it any more. Set it before the first operation.
    void on_failure(std::function<bool(int pe)> is_acknowledged) { is_acknowledged_ = std::move(is_acknowledged); }
    // From now on every failure that means the loss of a PE has Code::peer_dead.
    void survive_deaths() { survives_deaths_ = true; }
    [[nodiscard]] bool survives_deaths() const { return survives_deaths_; }
    [[nodiscard]] bool is_acknowledged(int pe) const { return is_acknowledged_ && is_acknowledged_(pe); }

    // Held by other callers of the transports' set-up functions.
    [[nodiscard]] std::unique_lock<std::mutex> lock_setup() { return std::unique_lock(setup_lock_); }

    [[nodiscard]] const NamedTransport& named(int transport) const {
        return transports_[static_cast<std::size_t>(transport)];
    }
    [[nodiscard]] const Reach& reach(int pe) const { return map_.route(pe).reach; }
    [[nodiscard]] const Waiter& waiter() const { return waiter_; }
    [[nodiscard]] Duration timeout() const { return timeout_; }

private:
    struct Peer {
        int pe;
        int transport;
        std::uint64_t remote;
    };

    // With setup_lock_ held.
    [[nodiscard]] std::vector<Peer>::iterator place_of(int pe);
    Result<Peer> connect(int pe);
    [[nodiscard]] bool is_linked(int pe) const;
    void set_linked(int pe, bool linked);
    // Both with progress_lock_ held.
    void progress_all();
    Status next_event(const NamedTransport& named);
    [[nodiscard]] bool in_use(std::size_t transport) const { return (map_.transports_in_use() >> transport & 1U) != 0; }

    std::span<const NamedTransport> transports_;
    const TransportMap& map_;
    PeerDirectory directory_;
    const Waiter& waiter_;
    Duration timeout_;
    std::mutex setup_lock_;  // for the transports' set-up functions
    // Those whose memory is imported, in order of PE: 16 bytes each. An insertion moves those behind it, which takes
    // less time than the connection unless there are some 100,000. Under setup_lock_.
    std::vector<Peer> peers_;
    std::vector<bool> linked_;  // by PE: the transport is connected to it; under setup_lock_
    std::set<int> forgotten_;   // the PEs whose transport has forgotten them since connect(); under setup_lock_
    std::mutex progress_lock_;  // for the transports' progress and events, and the members below
    npushmem_event event_{};    // empty; reused because every wait polls often and mostly finds none
    std::function<bool(int pe, Code code)> listener_;
    std::function<bool(int pe)> is_acknowledged_;
    bool survives_deaths_ = false;
};

}  // namespace npushmem
