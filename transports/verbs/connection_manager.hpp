// Connections to peers: lanes, which are connected at first use, and the exchange of connect messages.
//
// Two queue pairs need each other's numbers before either sends. A PE with work for a peer sends it a connect message,
// a datagram to the address that all PEs know from the start, and repeats it until the peer answers
// (connect_message.hpp). When both PEs start at the same time they still connect a single pair. On lanes other than
// lane 0 the peer's queue pair only receives. Wires exchange their control messages over lane 0.
#pragma once

#include <chrono>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <unordered_map>
#include <vector>

#include "transports/network/wire.hpp"
#include "transports/verbs/connection_table.hpp"
#include "transports/verbs/ud_handshake.hpp"

namespace npushmem::verbs {

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
