// SPDX-License-Identifier: BSD-3-Clause
// The connections of one PE, and the thread that serves them.
//
// The thread waits for messages, executes the requests of peers and receives replies. So a PE serves its peers while it
// computes. Calls of the program that wait (progress, test, quiet) do the same work once, without waiting.
#pragma once

#include <atomic>
#include <deque>
#include <map>
#include <memory>
#include <mutex>
#include <set>
#include <string>
#include <thread>
#include <vector>

#include "mine_initiator.hpp"
#include "mine_sockets.hpp"
#include "mine_target.hpp"

namespace mine_plugin {

// The events that poll_event has not returned yet. Any thread.
class Events {
public:
    explicit Events(const npushmem::Host& host) : host_(host) {}
    // Logs the message; it becomes an event unless there are too many.
    void report(Code code, int pe, const std::string& message);
    // ok, or again: there is none.
    Code poll(npushmem_event& out);

private:
    const npushmem::Host host_;
    std::mutex mutex_;
    std::deque<npushmem_event> events_;
    std::atomic<bool> has_events_{false};  // spares poll_event the lock
};

class Connections {
public:
    // Serves peers from here on. `regions` and `events` outlive this object.
    Connections(SocketWire wire, const npushmem_transport_params& params, Requester::Limits limits, Regions& regions,
                Events& events);
    // Closes all connections, so that no peer takes the end for a death.
    ~Connections();

    [[nodiscard]] const Address& address() const { return wire_.address(); }
    Status connect(const npushmem_peer& peer);
    // Fails the operations to this peer with Code::peer_dead and ends its connections. Its death is no event
    // afterwards.
    Code forget(int pe);
    // Posts an operation of this queue; null is refused.
    Code post(const std::shared_ptr<Queue>* queue, int pe, Operation operation, std::uint64_t* token);
    Code test(Queue& queue, std::uint64_t token);
    // Drops what is outstanding for this queue. Afterwards none of its local memory is accessed.
    void drop(const Queue& queue);
    // Serves what is ready. Returns whether there was something. timeout_ms: as SocketWire::wait.
    bool progress(int timeout_ms);

private:
    [[nodiscard]] Requester* requester_of(int pe) const;
    void run();
    void serve(std::uint64_t key);
    void accept_all();
    void report_end(Code code, int pe);

    const int pe_;
    const Requester::Limits limits_;
    Regions& regions_;
    Events& events_;
    const SocketWire wire_;
    // By PE; written by `connect` while other threads read other entries.
    std::vector<std::atomic<Requester*>> requester_of_;
    std::vector<std::unique_ptr<Requester>> requesters_;  // owns them

    std::mutex mutex_;  // held while connections are served; guards the members up to the next line
    std::map<std::uint64_t, Responder> responders_;  // by key
    std::uint64_t last_responder_ = 0;
    std::set<int> dead_;
    std::vector<std::byte> buffer_ = std::vector<std::byte>(receive_buffer_bytes);

    std::atomic<bool> stopping_{false};
    std::thread thread_;
};

}  // namespace mine_plugin
