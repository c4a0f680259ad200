// SPDX-License-Identifier: BSD-3-Clause
// Connections to peers: lanes, which are connected at first use, and the exchange of connect messages.
//
// Two queue pairs need each other's numbers before either sends. A PE with work for a peer sends it a connect message,
// a datagram to the address that all PEs know from the start, and repeats it until the peer answers
// (connect_message.hpp). When both PEs start at the same time they still connect a single pair. On lanes other than
// lane 0 the peer's queue pair only receives. Wires exchange their control messages over lane 0.
#pragma once

#include <algorithm>
#include <chrono>
#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <unordered_map>
#include <utility>
#include <vector>

#include "transports/network/combined_descriptor.hpp"
#include "transports/network/wire.hpp"
#include "transports/verbs/connection.hpp"
#include "transports/verbs/ud_handshake.hpp"

namespace npushmem::verbs {

// The connections of an open port: their creation, their loss, their end, and the posting of requests on them.

// Posts requests within the send credits: the room of the queue pair, and that of the completion queue, which all queue
// pairs share and which must not overflow.
class RequestPoster {
public:
    // `max_in_flight`: the entries of the completion queue for requests. `last_error` outlives this object.
    RequestPoster(std::uint32_t max_in_flight, std::string& last_error)
        : max_in_flight_(max_in_flight), last_error_(last_error) {}

    // Each connection reserves one request, which ends a burst.
    [[nodiscard]] bool can_add_connection() const { return connections_ + 1 + WorkChain::max_size <= max_in_flight_; }
    void add_connection() { ++connections_; }
    void remove_connection() { --connections_; }

    // The number of requests that can be posted on the connection now.
    [[nodiscard]] std::uint32_t room(const Connection& connection) const {
        const std::uint32_t all = max_in_flight_ - std::min(max_in_flight_, in_flight_ + connections_);
        return std::min({connection.requests().room(), all, WorkChain::max_size});
    }
    // Connection::post. There must be room. Records the reason of a failure in `last_error`.
    Code post(Connection& connection, WorkChain& chain, CompletionAction last) {
        const std::uint32_t before = connection.requests().under_way();
        const Code posted = connection.post(chain, last);
        in_flight_ += connection.requests().under_way() - before;
        if (posted != Code::ok) last_error_ = connection.failure().message();
        return posted;
    }
    // Uses the request that the connection has reserved.
    Code finish_burst(Connection& connection) {
        const std::uint32_t before = connection.requests().under_way();
        const Code posted = connection.finish_burst();
        in_flight_ += connection.requests().under_way() - before;
        return posted;
    }
    void completed(std::uint32_t count) { in_flight_ -= count; }
    // True when a posted request has not completed.
    [[nodiscard]] bool has_requests() const { return in_flight_ > 0; }

private:
    std::uint32_t in_flight_ = 0;  // posted requests that need room in the completion queue
    std::uint32_t max_in_flight_;
    std::uint32_t connections_ = 0;
    std::string& last_error_;
};

// Connections with work that the next progress continues: control messages to send, or an unfinished transfer.
class ServiceQueue {
public:
    // `descriptor` outlives this object.
    explicit ServiceQueue(network::CombinedDescriptor& descriptor) : descriptor_(descriptor) {}

    [[nodiscard]] bool empty() const { return queue_.empty(); }
    void add(Connection& connection) {
        if (std::exchange(connection.needs_service, true)) return;
        queue_.push_back(&connection);
        // A completion would continue the work, but a thread may be waiting for arrivals only, and completions so far
        // raise no event.
        descriptor_.wake();
    }
    // The caller clears `needs_service` of each connection before it serves it.
    std::vector<Connection*> take() { return std::exchange(queue_, {}); }

private:
    network::CombinedDescriptor& descriptor_;
    std::vector<Connection*> queue_;
};

// All connections of an open port, by their numbers. The owners of connections in use are the lanes of the peers
// (PeerTable). The table owns closed connections until their requests have completed.
class ConnectionTable {
public:
    // The arguments outlive the table.
    ConnectionTable(OpenedPort& port, ibv_srq* receives, RequestPoster& poster, ServiceQueue& service)
        : port_(port), receives_(receives), poster_(poster), service_(service) {}

    // Creates a connection. The caller owns it until it passes it to `retire`.
    Result<std::unique_ptr<Connection>> make(network::LaneId lane_id, bool inbound);
    // By ConnectionRole::number.
    [[nodiscard]] Connection& at(std::uint32_t index) { return *by_index_[index]; }
    // By number of the queue pair. Null: it does not exist any more.
    [[nodiscard]] Connection* find(std::uint32_t queue_pair) const {
        const auto found = by_queue_pair_.find(queue_pair);
        return found != by_queue_pair_.end() ? found->second : nullptr;
    }

    // Stops the queue pair, which completes all requests in flight. Unfinished transfers end after that.
    void stop(Connection& connection, const char* why);
    void retire(std::unique_ptr<Connection> connection);
    [[nodiscard]] std::size_t retired() const { return retired_.size(); }
    // True when a retired connection has no work left.
    [[nodiscard]] bool has_destroyable() const { return std::any_of(retired_.begin(), retired_.end(), is_over); }
    // Destroys those of the first `count` retired connections that are over and whose completions have all been polled.
    // Destroying a queue pair may drop its completions, and with them receives from the shared queue. Returns the
    // numbers of the queue pairs.
    std::vector<std::uint32_t> destroy_retired(std::size_t count);

    // The connection has failed: its operations fail, and its lane is lost.
    void lose(network::WireListener& listener, Connection& connection, Status why);
    void lose_all(network::WireListener& listener, const Status& why);

private:
    // True when the retired connection has no work left.
    static bool is_over(const std::unique_ptr<Connection>& retired);

    OpenedPort& port_;
    ibv_srq* receives_;
    RequestPoster& poster_;
    ServiceQueue& service_;
    std::unordered_map<std::uint32_t, Connection*> by_queue_pair_;
    std::vector<Connection*> by_index_;                 // null: unused
    std::vector<std::unique_ptr<Connection>> retired_;  // closed connections with work left
};

using Clock = std::function<std::chrono::steady_clock::time_point()>;

// The peers and the connections of their lanes.
class PeerTable {
public:
    struct Lane {
        std::unique_ptr<Connection> connection;
        std::uint32_t generation = 0;     // number of times that it was closed
        bool connecting = false;          // the ConnectionManager repeats its request
        std::uint32_t requests_sent = 0;  // number without an answer
    };
    // The receiving end of a lane other than lane 0, whose sender is the peer.
    struct InboundLane {
        std::unique_ptr<Connection> connection;
        std::uint32_t generation = 0;
    };
    struct Peer {
        std::optional<PortAddress> port_address;
        std::size_t port = 0;     // index of that address among the peer's ports
        std::vector<Lane> lanes;  // up to the highest used
        std::unordered_map<std::uint32_t, InboundLane> inbound;
    };

    explicit PeerTable(std::size_t npes) : peers_(npes) {}

    [[nodiscard]] bool has(int pe) const { return pe >= 0 && static_cast<std::size_t>(pe) < peers_.size(); }
    [[nodiscard]] Peer& at(int pe) {
        auto& out = peers_[static_cast<std::size_t>(pe)];
        if (!out) out = std::make_unique<Peer>();
        return *out;
    }
    [[nodiscard]] Lane& lane(network::LaneId lane_id) {
        auto& lanes = at(lane_id.pe).lanes;
        if (lane_id.lane >= lanes.size()) lanes.resize(lane_id.lane + 1);
        return lanes[lane_id.lane];
    }
    // Null when the connection needs work or has a failure to report first.
    [[nodiscard]] Connection* open_connection(network::LaneId lane_id) const {
        const auto& peer = peers_[static_cast<std::size_t>(lane_id.pe)];
        if (peer == nullptr || lane_id.lane >= peer->lanes.size()) return nullptr;
        Connection* const found = peer->lanes[lane_id.lane].connection.get();
        return found != nullptr && found->is_open() ? found : nullptr;
    }

private:
    std::vector<std::unique_ptr<Peer>> peers_;  // null: unused
};

class ConnectionManager {
public:
    struct Identity {
        int pe;
        std::size_t npes;
        PortAddress address;  // of this PE's port
    };
    // `connections`, `service` and `last_error` outlive this object. `connections` is used in calls only.
    ConnectionManager(const Identity& self, std::unique_ptr<UdHandshake> handshake, Clock now,
                      ConnectionTable& connections, ServiceQueue& service, std::string& last_error)
        : self_(self),
          now_(std::move(now)),
          connections_(connections),
          service_(service),
          last_error_(last_error),
          handshake_(std::move(handshake)),
          peers_(self.npes) {}

    [[nodiscard]] const PortAddress& own_address() const { return self_.address; }
    [[nodiscard]] PeerTable& peers() { return peers_; }

    // Finds the connection, and starts connecting the lane if necessary. Code::again: the connection is being
    // established, or an earlier transfer goes first.
    Code connection_to(network::LaneId lane_id, Connection*& out);
    network::Readiness readiness(network::LaneId lane_id);
    void forget(int pe);
    void close(network::LaneId lane_id);

    // Handle completions of the handshake's queue pair.
    void sent(const ibv_wc& completion) { handshake_->sent(completion); }
    void received(network::WireListener& listener, const ibv_wc& completion);
    // True while a connect request waits for its answer.
    [[nodiscard]] bool is_connecting() const { return !pending_connects_.empty(); }
    // Repeats connect requests. True when it sent one.
    bool retry(network::WireListener& listener);

private:
    struct PendingConnect {
        network::LaneId lane_id;
        std::chrono::steady_clock::time_point retry_at;
    };
    static constexpr std::chrono::milliseconds retry_interval{50};
    static constexpr std::uint32_t max_unanswered_requests = 20;  // then readiness() stops waiting for the peer

    Status make_connection(network::LaneId lane_id);
    Code start_connecting(network::LaneId lane_id);
    // `own`: the queue pair to announce to the peer; null in a refusal.
    Status send_message(network::LaneId lane_id, std::uint32_t generation, ConnectMessage::Kind kind,
                        const Connection* own);
    Status send_request(network::LaneId lane_id);
    void handle_first_lane(network::WireListener& listener, const ConnectMessage& message);
    void handle_rejection(network::WireListener& listener, int pe);
    void accept_lane_request(const ConnectMessage& message);
    Status accept_lane(const ConnectMessage& message);
    void handle_lane_answer(network::WireListener& listener, const ConnectMessage& message);

    Identity self_;
    Clock now_;
    ConnectionTable& connections_;
    ServiceQueue& service_;
    std::string& last_error_;
    // Destroyed in reverse order: connections first, then the handshake's queue pair.
    std::unique_ptr<UdHandshake> handshake_;
    PeerTable peers_;
    std::vector<PendingConnect> pending_connects_;
};

}  // namespace npushmem::verbs
