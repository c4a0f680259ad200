// SPDX-License-Identifier: BSD-3-Clause
#include "transports/verbs/connection_manager.hpp"

#include <fmt/format.h>
#include <utility>

namespace npushmem::verbs {

Result<std::unique_ptr<Connection>> ConnectionTable::make(network::LaneId lane_id, bool inbound) {
    if (!poster_.can_add_connection())
        return Status{
            Code::system,
            fmt::format("{} queue pairs use all {} entries of the completion queue; set NPUSHMEM_VERBS_LANES to a "
                        "smaller number",
                        by_queue_pair_.size(), port_.completions().entries())};
    auto free = std::find(by_index_.begin(), by_index_.end(), nullptr);
    if (free == by_index_.end()) free = by_index_.insert(free, nullptr);
    const auto index = static_cast<std::uint32_t>(free - by_index_.begin());
    auto made = Connection::make(port_, receives_, {lane_id, inbound, index});
    if (!made.ok()) return made;
    *free = made.value().get();
    by_queue_pair_.emplace((*free)->pair().number(), *free);
    poster_.add_connection();
    return made;
}

void ConnectionTable::stop(Connection& connection, const char* why) {
    connection.fail({Code::peer_dead, why});
    connection.pair().stop();
    connection.control_queue.clear();
    if (connection.unfinished != nullptr) service_.add(connection);
}

void ConnectionTable::retire(std::unique_ptr<Connection> connection) {
    connection->retired = true;
    stop(*connection, "the connection has been closed");
    retired_.push_back(std::move(connection));
}

bool ConnectionTable::is_over(const std::unique_ptr<Connection>& retired) {
    return retired->requests().under_way() == 0 && retired->unfinished == nullptr && !retired->needs_service;
}

std::vector<std::uint32_t> ConnectionTable::destroy_retired(std::size_t count) {
    std::vector<std::uint32_t> destroyed;
    const auto end = retired_.begin() + static_cast<std::ptrdiff_t>(count);
    const auto first_removed = std::remove_if(retired_.begin(), end, [&](const auto& each) {
        if (!is_over(each)) return false;
        destroyed.push_back(each->pair().number());
        by_queue_pair_.erase(each->pair().number());
        by_index_[each->role().number] = nullptr;
        poster_.remove_connection();
        return true;
    });
    retired_.erase(first_removed, end);
    return destroyed;
}

void ConnectionTable::lose(network::WireListener& listener, Connection& connection, Status why) {
    connection.fail(std::move(why));
    if (connection.unfinished != nullptr) service_.add(connection);
    // The sender of an inbound lane notices the loss itself. A retired connection's lane may have another one now.
    if (connection.role().inbound || connection.retired) return;
    const Status reason = connection.failure();
    listener.lost(connection.role().lane_id, reason.code(), reason.message());
}

void ConnectionTable::lose_all(network::WireListener& listener, const Status& why) {
    for (auto& [number, connection] : by_queue_pair_) lose(listener, *connection, why);
}

namespace {

using network::LaneId;
using network::WireListener;

}  // namespace

Status ConnectionManager::make_connection(LaneId lane_id) {
    PeerTable::Lane& with = peers_.lane(lane_id);
    if (with.connection) return with.connection->failure();
    auto made = connections_.make(lane_id, false);
    if (!made.ok()) return made.status();
    with.connection = std::move(made).value();
    return {};
}

Status ConnectionManager::send_message(LaneId lane_id, std::uint32_t generation, ConnectMessage::Kind kind,
                                       const Connection* own) {
    const PortAddress& to = *peers_.at(lane_id.pe).port_address;
    ConnectMessage message;
    message.from = self_.address;
    message.to_nonce = to.nonce;
    message.pe = self_.pe;
    if (own != nullptr) message.number = own->pair().number();
    if (own != nullptr) message.initial_psn = own->pair().initial_psn();
    message.kind = kind;
    message.lane = lane_id.lane;
    message.generation = generation;
    return handshake_->send(to, message);
}

Status ConnectionManager::send_request(LaneId lane_id) {
    PeerTable::Lane& of = peers_.lane(lane_id);
    ++of.requests_sent;
    return send_message(lane_id, of.generation, ConnectMessage::Kind::request, of.connection.get());
}

Code ConnectionManager::start_connecting(LaneId lane_id) {
    if (std::exchange(peers_.lane(lane_id).connecting, true)) return Code::again;
    Status s = make_connection(lane_id);
    if (s.ok()) s = send_request(lane_id);
    if (s.ok()) {
        pending_connects_.push_back({lane_id, now_() + retry_interval});
        return Code::again;
    }
    PeerTable::Lane& of = peers_.lane(lane_id);
    of.connecting = false;
    if (lane_id.lane > 0)
        s = s.within("cannot create a context's queue pair (NPUSHMEM_VERBS_LANES reduces their number)");
    last_error_ = s.message();
    if (of.connection) of.connection->fail(s);
    return s.code();
}

Code ConnectionManager::connection_to(LaneId lane_id, Connection*& out) {
    if (!peers_.at(lane_id.pe).port_address) {
        last_error_ = "its address is not known";
        return Code::unreachable;
    }
    const PeerTable::Lane& of = peers_.lane(lane_id);
    if (!of.connection || !of.connection->ready()) {
        if (!of.connection || of.connection->failure().ok()) return start_connecting(lane_id);
    }
    out = of.connection.get();
    if (!out->failure().ok()) {
        last_error_ = out->failure().message();
        return out->failure().code();
    }
    return out->unfinished != nullptr ? Code::again : Code::ok;
}

network::Readiness ConnectionManager::readiness(LaneId lane_id) {
    Connection* found = nullptr;
    const Code code = connection_to(lane_id, found);
    if (found != nullptr && found->failure().ok()) return network::Readiness::ready;
    return code == Code::again && peers_.lane(lane_id).requests_sent < max_unanswered_requests
               ? network::Readiness::connecting
               : network::Readiness::unreachable;
}

void ConnectionManager::forget(int pe) {
    PeerTable::Peer& of = peers_.at(pe);
    for (const auto& each : of.lanes)
        if (each.connection) connections_.stop(*each.connection, "the peer is no longer used");
    for (auto& [number, each] : of.inbound) each.connection->pair().stop();
}

void ConnectionManager::close(LaneId lane_id) {
    PeerTable::Lane& closed = peers_.lane(lane_id);
    ++closed.generation;
    closed.connecting = false;
    closed.requests_sent = 0;
    std::erase_if(pending_connects_, [&](const PendingConnect& connecting) { return connecting.lane_id == lane_id; });
    if (closed.connection) connections_.retire(std::move(closed.connection));
}

void ConnectionManager::received(WireListener& listener, const ibv_wc& completion) {
    const auto message = handshake_->received(completion);
    const bool of_this_job =
        message && message->to_nonce == self_.address.nonce && message->pe != self_.pe && peers_.has(message->pe);
    if (!of_this_job) return;
    PeerTable::Peer& from = peers_.at(message->pe);
    if (!from.port_address) from.port_address = message->from;
    if (from.port_address->nonce != message->from.nonce) return;
    if (message->lane == 0) return handle_first_lane(listener, *message);
    if (message->kind == ConnectMessage::Kind::request) return accept_lane_request(*message);
    handle_lane_answer(listener, *message);
}

void ConnectionManager::handle_first_lane(WireListener& listener, const ConnectMessage& message) {
    if (message.kind == ConnectMessage::Kind::refusal) return handle_rejection(listener, message.pe);
    Status s = make_connection({message.pe});
    const PeerTable::Lane& first = peers_.lane({message.pe});
    if (s.ok()) s = first.connection->connect(message);
    if (s.ok() && message.kind == ConnectMessage::Kind::request)
        s = send_message({message.pe}, 0, ConnectMessage::Kind::answer, first.connection.get());
    if (!s.ok()) {
        // Otherwise the peer repeats its request until it times out.
        if (message.kind == ConnectMessage::Kind::request)
            (void)send_message({message.pe}, 0, ConnectMessage::Kind::refusal, nullptr);
        if (first.connection && first.connection->failure().ok()) first.connection->fail(s);
        return listener.lost({message.pe}, s.code(), s.message());
    }
    if (message.kind == ConnectMessage::Kind::answer) first.connection->set_peer_ready();
    if (first.connection->ready() && !first.connection->control_queue.empty()) service_.add(*first.connection);
}

void ConnectionManager::handle_rejection(WireListener& listener, int pe) {
    const PeerTable::Lane& first = peers_.lane({pe});
    if (!first.connection || first.connection->ready()) return;  // late
    connections_.lose(listener, *first.connection,
                      {Code::unreachable,
                       "the peer could not create its queue pair for this PE, or no longer uses this PE; the "
                       "peer's messages give the reason"});
}

// The peer requests a lane for its sends. It has closed the earlier generation of the lane.
void ConnectionManager::accept_lane_request(const ConnectMessage& message) {
    const LaneId lane_id{message.pe, message.lane};
    auto& inbound = peers_.at(message.pe).inbound;
    const auto known = inbound.find(message.lane);
    if (known != inbound.end() && known->second.generation > message.generation) return;  // late
    Status s;
    if (known == inbound.end() || known->second.generation < message.generation) s = accept_lane(message);
    const bool ok = s.ok();
    const Connection* const taken = ok ? inbound.at(message.lane).connection.get() : nullptr;
    // If the answer is not sent, the peer requests it again.
    (void)send_message(lane_id, message.generation, ok ? ConnectMessage::Kind::answer : ConnectMessage::Kind::refusal,
                       taken);
}

Status ConnectionManager::accept_lane(const ConnectMessage& message) {
    auto& inbound = peers_.at(message.pe).inbound;
    if (const auto old = inbound.find(message.lane); old != inbound.end()) {
        connections_.retire(std::move(old->second.connection));
        inbound.erase(old);
    }
    auto made = connections_.make({message.pe, message.lane}, true);
    if (!made.ok()) return made.status();
    Status s = made.value()->connect(message);
    if (!s.ok()) {
        connections_.retire(std::move(made).value());
        return s;
    }
    inbound.emplace(message.lane, PeerTable::InboundLane{std::move(made).value(), message.generation});
    return {};
}

void ConnectionManager::handle_lane_answer(WireListener& listener, const ConnectMessage& message) {
    if (message.lane >= peers_.at(message.pe).lanes.size()) return;  // this PE has not requested it
    const PeerTable::Lane& own = peers_.lane({message.pe, message.lane});
    if (!own.connection || own.generation != message.generation || own.connection->ready()) return;
    Status s = message.kind == ConnectMessage::Kind::answer
                   ? own.connection->connect(message)
                   : Status{Code::system,
                            "the peer could not create a queue pair for a context (NPUSHMEM_VERBS_LANES "
                            "reduces their number)"};
    if (s.ok()) return own.connection->set_peer_ready();
    connections_.lose(listener, *own.connection, std::move(s));
}

bool ConnectionManager::retry(WireListener& listener) {
    bool sent = false;
    const auto now = now_();
    std::vector<LaneId> unreachable;
    std::erase_if(pending_connects_, [&](PendingConnect& connecting) {
        PeerTable::Lane& of = peers_.lane(connecting.lane_id);
        if (of.connection && (of.connection->ready() || !of.connection->failure().ok())) {
            of.connecting = false;
            return true;
        }
        if (now < connecting.retry_at || !of.connection) return false;
        connecting.retry_at = now + retry_interval;
        sent = true;
        if (Status s = send_request(connecting.lane_id); !s.ok()) of.connection->fail(std::move(s));
        if (!of.connection->failure().ok()) unreachable.push_back(connecting.lane_id);
        return false;
    });
    for (const LaneId lane_id : unreachable) {
        const Status why = peers_.lane(lane_id).connection->failure();
        listener.lost(lane_id, why.code(), why.message());
    }
    return sent;
}

}  // namespace npushmem::verbs
