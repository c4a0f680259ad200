// The connections of an open port: their creation, their loss, their end, and the posting of requests on them.
#pragma once

#include <algorithm>
#include <cstdint>
#include <memory>
#include <string>
#include <unordered_map>
#include <utility>
#include <vector>

#include "transports/network/combined_descriptor.hpp"
#include "transports/network/wire.hpp"
#include "transports/verbs/connection.hpp"

namespace npushmem::verbs {

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

}  // namespace npushmem::verbs
