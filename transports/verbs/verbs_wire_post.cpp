// Connections, made at first use, and posting.
#include <arpa/inet.h>
#include <fmt/format.h>

#include <algorithm>

#include "npushmem/plugin/local_atomic.hpp"
#include "transports/verbs/connect_message.hpp"
#include "transports/verbs/verbs_wire.hpp"

namespace npushmem::verbs {
namespace {

using network::RemoteAddress;
using network::WireContext;

constexpr std::uint64_t max_bytes_per_request = 1ULL << 30;

}  // namespace

VerbsWire::Lane& VerbsWire::lane(network::LaneId lane_id) {
    auto& lanes = peer(lane_id.pe).lanes;
    if (lane_id.lane >= lanes.size()) lanes.resize(lane_id.lane + 1);
    return lanes[lane_id.lane];
}

Result<std::unique_ptr<Connection>> VerbsWire::new_connection(network::LaneId lane_id, bool inbound) {
    if (by_number_.size() + 1 + WorkChain::max_size > max_in_flight_)
        return Status{
            Code::system,
            fmt::format("{} queue pairs use all {} entries of the completion queue; set NPUSHMEM_VERBS_LANES to a "
                        "smaller number",
                        by_number_.size(), port_->completions().entries())};
    auto free = std::find(connections_.begin(), connections_.end(), nullptr);
    if (free == connections_.end()) free = connections_.insert(free, nullptr);
    const auto number = static_cast<std::uint32_t>(free - connections_.begin());
    auto made = Connection::make(*port_, receive_queue_.get(), {lane_id, inbound, number});
    if (!made.ok()) return made;
    *free = made.value().get();
    by_number_.emplace((*free)->pair().number(), *free);
    return made;
}

Status VerbsWire::make_connection(network::LaneId lane_id) {
    Lane& with = lane(lane_id);
    if (with.connection) return with.connection->failure();
    auto made = new_connection(lane_id, false);
    if (!made.ok()) return made.status();
    with.connection = std::move(made).value();
    return {};
}

Status VerbsWire::send_connect_message(network::LaneId lane_id, std::uint32_t generation, ConnectMessage::Kind kind,
                                       const Connection* own) {
    const PortAddress& to = *peer(lane_id.pe).port_address;
    ConnectMessage message;
    message.from = own_port_address();
    message.to_nonce = to.nonce;
    message.pe = local_pe_.pe;
    if (own != nullptr) message.number = own->pair().number();
    if (own != nullptr) message.initial_psn = own->pair().initial_psn();
    message.kind = kind;
    message.lane = lane_id.lane;
    message.generation = generation;
    return handshake_->send(to, message);
}

Status VerbsWire::send_connect_request(network::LaneId lane_id) {
    Lane& of = lane(lane_id);
    ++of.requests_sent;
    return send_connect_message(lane_id, of.generation, ConnectMessage::Kind::request, of.connection.get());
}

Code VerbsWire::start_connecting(network::LaneId lane_id) {
    if (std::exchange(lane(lane_id).connecting, true)) return Code::again;
    Status s = make_connection(lane_id);
    if (s.ok()) s = send_connect_request(lane_id);
    if (s.ok()) {
        pending_connects_.push_back({lane_id, now_() + connect_retry_interval});
        return Code::again;
    }
    Lane& of = lane(lane_id);
    of.connecting = false;
    if (lane_id.lane > 0)
        s = s.within("cannot create a context's queue pair (NPUSHMEM_VERBS_LANES reduces their number)");
    last_error_ = s.message();
    if (of.connection) of.connection->fail(s);
    return s.code();
}

// Code::again: the connection is being established, or an earlier transfer goes first.
Code VerbsWire::connection_to(network::LaneId lane_id, Connection*& out) {
    if (!peer(lane_id.pe).port_address) {
        last_error_ = "its address is not known";
        return Code::unreachable;
    }
    const Lane& of = lane(lane_id);
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

Connection* VerbsWire::open_connection(network::LaneId lane_id) const {
    const auto& peer = peers_[static_cast<std::size_t>(lane_id.pe)];
    if (peer == nullptr || lane_id.lane >= peer->lanes.size()) return nullptr;
    Connection* const found = peer->lanes[lane_id.lane].connection.get();
    return found != nullptr && found->is_open() ? found : nullptr;
}

network::Readiness VerbsWire::readiness(network::LaneId lane_id) {
    Connection* found = nullptr;
    const Code code = connection_to(lane_id, found);
    if (found != nullptr && found->failure().ok()) return network::Readiness::ready;
    return code == Code::again && lane(lane_id).requests_sent < max_unanswered_requests
               ? network::Readiness::connecting
               : network::Readiness::unreachable;
}

Connection* VerbsWire::first_connection(int pe) {
    Connection* ignored = nullptr;
    (void)connection_to({pe}, ignored);
    return lane({pe}).connection.get();
}

std::uint32_t VerbsWire::room(const Connection& connection) const {
    const auto reserved = static_cast<std::uint32_t>(by_number_.size());  // one request per connection to end a burst
    const std::uint32_t all = max_in_flight_ - std::min(max_in_flight_, in_flight_ + reserved);
    return std::min({connection.requests().room(), all, WorkChain::max_size});
}

Code VerbsWire::post(Connection& connection, WorkChain& chain, CompletionAction last) {
    const std::uint32_t before = connection.requests().under_way();
    const Code posted = connection.post(chain, last);
    in_flight_ += connection.requests().under_way() - before;
    if (posted != Code::ok) last_error_ = connection.failure().message();
    return posted;
}

VerbsWire::Prepared VerbsWire::fail_deferred(WireContext& context, Status why) {
    failed_.push_back({&context, std::move(why)});
    return Prepared::failed;
}

VerbsWire::Prepared VerbsWire::prepare_keys(Connection& connection, const RemoteAddress& place, std::uint64_t bytes,
                                            WireContext& context) {
    RemoteMemory& remote = this->remote(place.key);
    if (!remote.has(place.offset, bytes))
        return fail_deferred(context, {Code::range, "the range exceeds the peer's memory"});
    if (auto failure = remote.take_failure(place.offset, bytes)) return fail_deferred(context, std::move(*failure));
    Connection* const asked = place.lane_id.lane == 0 ? &connection : first_connection(place.lane_id.pe);
    if (asked == nullptr || !asked->failure().ok()) return fail_deferred(context, {Code::peer_dead, last_error_});
    const bool known = remote.has_keys(place.offset, bytes, [&](std::uint64_t chunk) {
        send_control(*asked, KeyRequest::kind, bytes_from(KeyRequest{remote.region(), chunk, place.key}));
    });
    return known ? Prepared::yes : Prepared::not_yet;
}

VerbsWire::Prepared VerbsWire::prepare_local(Transfer& transfer, void* local, std::uint64_t bytes) {
    transfer.local = static_cast<std::byte*>(local);
    if (memory_->has(local, bytes)) {
        Status s = memory_->prepare(local, bytes);
        return s.ok() ? Prepared::yes : fail_deferred(*transfer.context, std::move(s));
    }
    if (bytes > bounce_buffers_->bytes()) {
        transfer.registration = cache_->find(local, bytes);
        if (transfer.registration) return Prepared::yes;
        auto made = port_->domain().register_memory(local, bytes, transfer.reads ? IBV_ACCESS_LOCAL_WRITE : 0);
        if (!made.ok()) return fail_deferred(*transfer.context, made.status());
        transfer.registration = std::move(made).value();
        return Prepared::yes;
    }
    transfer.buffer = bounce_buffers_->take();
    if (transfer.buffer == nullptr) return Prepared::not_yet;
    transfer.pool = bounce_buffers_.get();
    transfer.local = transfer.buffer;
    if (!transfer.reads) std::memcpy(transfer.buffer, local, bytes);
    if (transfer.reads) transfer.copy_to = local;
    transfer.copy_size = bytes;
    return Prepared::yes;
}

VerbsWire::Transfer& VerbsWire::take_transfer(WireContext& context) {
    if (free_transfers_.empty()) free_transfers_.push_back(&transfers_.emplace_back());
    Transfer& out = *free_transfers_.back();
    free_transfers_.pop_back();
    out = {};
    out.context = &context;
    return out;
}

void VerbsWire::release(Transfer& transfer) {
    if (transfer.buffer != nullptr) transfer.pool->release(transfer.buffer);
    transfer.buffer = nullptr;
    transfer.registration.reset();
    free_transfers_.push_back(&transfer);
}

LocalMemory::Piece VerbsWire::local_piece(const Transfer& transfer) const {
    if (transfer.registration) return {transfer.registration->lkey, transfer.left};
    if (transfer.buffer != nullptr) return {transfer.pool->lkey(), transfer.left};
    return memory_->piece_at(transfer.local);
}

void VerbsWire::add_pieces(Connection& connection, Transfer& transfer, WorkChain& chain, std::uint32_t max_size) {
    const std::uint64_t largest = std::min<std::uint64_t>(max_bytes_per_request, port_->port().max_msg_sz);
    while (transfer.left > 0 && chain.size() < max_size) {
        const auto there = transfer.remote->piece_at(transfer.offset);
        const bool is_inline = !transfer.reads && transfer.left <= connection.pair().inline_bytes();
        const auto here = is_inline ? LocalMemory::Piece{0, transfer.left} : local_piece(transfer);
        const std::uint64_t bytes = std::min({transfer.left, here.bytes, there.bytes, largest});
        const LocalSegment local{transfer.local, static_cast<std::uint32_t>(bytes), here.lkey};
        const RemoteWord remote{transfer.base + transfer.offset, there.rkey};
        if (transfer.reads)
            chain.read(remote, local);
        else
            chain.write(local, remote, is_inline);
        transfer.local += bytes;
        transfer.offset += bytes;
        transfer.left -= bytes;
    }
}

// Code::ok: the transfer is posted completely. Code::again: there is no room for the rest now.
Code VerbsWire::post_remaining(Connection& connection, Transfer& transfer) {
    for (;;) {
        const std::uint32_t max_size = room(connection);
        WorkChain chain;
        add_pieces(connection, transfer, chain, max_size);
        bool done = transfer.left == 0;
        if (done && transfer.signal) {
            done = chain.size() < max_size;
            if (done)
                chain.write({&transfer.signal->value, sizeof transfer.signal->value, 0}, transfer.signal->at, true);
        }
        if (chain.size() == 0) return Code::again;
        const Code posted =
            post(connection, chain,
                 done ? CompletionAction{CompletionAction::Kind::transfer, &transfer} : CompletionAction{});
        if (posted != Code::ok || done) return posted;
    }
}

RemoteWord VerbsWire::word_at(const RemoteAddress& place) {
    return {place.base + place.offset, remote(place.key).piece_at(place.offset).rkey};
}

Code VerbsWire::transfer(const RemoteAddress& place, void* local, std::uint64_t bytes, bool reads,
                         const RemoteAddress* signal_at, std::uint64_t signal, WireContext& context) {
    Connection* connection = nullptr;
    if (const Code code = connection_to(place.lane_id, connection); code != Code::ok) return code;
    if (room(*connection) < 2) return Code::again;
    Prepared prepared = prepare_keys(*connection, place, bytes, context);
    if (prepared == Prepared::yes && signal_at != nullptr)
        prepared = prepare_keys(*connection, *signal_at, sizeof signal, context);
    if (prepared != Prepared::yes) return prepared == Prepared::failed ? Code::ok : Code::again;

    Transfer& made = take_transfer(context);
    made.reads = reads;
    made.left = bytes;
    made.remote = &remote(place.key);
    made.base = place.base;
    made.offset = place.offset;
    made.local = static_cast<std::byte*>(local);
    if (signal_at != nullptr) made.signal = Signal{word_at(*signal_at), signal};
    if (reads || bytes > connection->pair().inline_bytes()) prepared = prepare_local(made, local, bytes);
    if (prepared != Prepared::yes) {
        release(made);
        return prepared == Prepared::failed ? Code::ok : Code::again;
    }
    const Code posted = post_remaining(*connection, made);
    if (posted == Code::ok) return Code::ok;
    // When the connection is broken, this still waits for its requests in flight, without reporting the operation.
    if (posted != Code::again) made.context = nullptr;
    connection->unfinished = reinterpret_cast<verbs::Transfer*>(&made);
    queue_for_service(*connection);
    return posted == Code::again ? Code::ok : posted;
}

Code VerbsWire::try_inline_write(const RemoteAddress& to, const void* from, std::uint64_t bytes, WireContext& context) {
    Connection* const connection = open_connection(to.lane_id);
    if (connection == nullptr || bytes > connection->pair().inline_bytes() || room(*connection) == 0)
        return Code::again;
    const std::uint32_t rkey = remote(to.key).key_of(to.offset, bytes);
    if (rkey == 0) return Code::again;
    WorkChain chain;
    chain.write({from, static_cast<std::uint32_t>(bytes), 0}, {to.base + to.offset, rkey}, true);
    return post(*connection, chain, {CompletionAction::Kind::context, &context});
}

Code VerbsWire::write(const RemoteAddress& to, const void* from, std::uint64_t bytes, WireContext& context) {
    if (const Code code = try_inline_write(to, from, bytes, context); code != Code::again) return code;
    // A write does not change its source.
    return transfer(to, const_cast<void*>(from), bytes, false, nullptr, 0, context);
}

Code VerbsWire::read(const RemoteAddress& from, void* to, std::uint64_t bytes, WireContext& context) {
    return transfer(from, to, bytes, true, nullptr, 0, context);
}

Code VerbsWire::write_signal(const RemoteAddress& to, const void* from, std::uint64_t bytes, const RemoteAddress& at,
                             std::uint64_t signal, WireContext& context) {
    return transfer(to, const_cast<void*>(from), bytes, false, &at, signal, context);
}

Code VerbsWire::atomic(const RemoteAddress& at, const npushmem_atomic& op, WireContext& context) {
    Connection* connection = open_connection(at.lane_id);
    if (connection == nullptr)
        if (const Code code = connection_to(at.lane_id, connection); code != Code::ok) return code;
    if (room(*connection) == 0) return Code::again;
    RemoteWord word_there{at.base + at.offset, remote(at.key).key_of(at.offset, op.width)};
    if (word_there.rkey == 0) {
        const Prepared prepared = prepare_keys(*connection, at, op.width, context);
        if (prepared != Prepared::yes) return prepared == Prepared::failed ? Code::ok : Code::again;
        word_there = word_at(at);
    }
    std::byte* const word = words_->take();
    if (word == nullptr) return Code::again;
    fetches_[words_->index_of(word)] = {&context, fetches(op.operation) ? op.result : nullptr, op.width};
    const LocalSegment old{word, sizeof(std::uint64_t), words_->lkey()};
    WorkChain chain;
    if (op.operation == NPUSHMEM_ATOMIC_FETCH)
        chain.read(word_there, old);
    else if (op.operation == NPUSHMEM_ATOMIC_COMPARE_SWAP)
        chain.compare_swap(word_there, op.compare, op.operand, old);
    else
        chain.fetch_add(word_there, op.operand, old);
    const Code posted = post(*connection, chain, {CompletionAction::Kind::word, word});
    if (posted != Code::ok) words_->release(word);
    return posted;
}

Code VerbsWire::send_message(Connection& connection, std::span<const std::byte> head, std::span<const std::byte> rest,
                             std::uint32_t immediate) {
    if (room(connection) == 0) return Code::again;
    const auto length = [](std::span<const std::byte> bytes) { return static_cast<std::uint32_t>(bytes.size()); };
    WorkChain chain;
    if (head.size() + rest.size() <= connection.pair().inline_bytes()) {
        chain.message({head.data(), length(head), 0}, {rest.data(), length(rest), 0}, true, htonl(immediate));
        return post(connection, chain, {});
    }
    std::byte* const buffer = sends_->take();
    if (buffer == nullptr) return Code::again;
    std::memcpy(buffer, head.data(), head.size());
    if (!rest.empty()) std::memcpy(buffer + head.size(), rest.data(), rest.size());
    chain.message({buffer, length(head) + length(rest), sends_->lkey()}, {}, false, htonl(immediate));
    const Code posted = post(connection, chain, {CompletionAction::Kind::message, buffer});
    if (posted != Code::ok) sends_->release(buffer);
    return posted;
}

Code VerbsWire::send(network::LaneId lane_id, std::span<const std::byte> head, std::span<const std::byte> rest) {
    if (head.size() + rest.size() > message_bytes) return Code::argument;
    Connection* connection = nullptr;
    if (const Code code = connection_to(lane_id, connection); code != Code::ok) return code;
    return send_message(*connection, head, rest, 0);
}

namespace {

// Stopping completes all requests in flight. Unfinished transfers end after that.
void stop_connection(Connection& connection, const char* why) {
    connection.fail({Code::peer_dead, why});
    connection.pair().stop();
    connection.control_queue.clear();
}

}  // namespace

void VerbsWire::forget(int pe) {
    Peer& of = peer(pe);
    for (const auto& each : of.lanes) {
        if (!each.connection) continue;
        stop_connection(*each.connection, "the peer is no longer used");
        if (each.connection->unfinished != nullptr) queue_for_service(*each.connection);
    }
    for (auto& [number, each] : of.inbound) each.connection->pair().stop();
}

void VerbsWire::close(network::LaneId lane_id) {
    Lane& closed = lane(lane_id);
    ++closed.generation;
    closed.connecting = false;
    closed.requests_sent = 0;
    std::erase_if(pending_connects_, [&](const PendingConnect& connecting) { return connecting.lane_id == lane_id; });
    if (closed.connection) retire(std::move(closed.connection));
}

void VerbsWire::retire(std::unique_ptr<Connection> connection) {
    connection->retired = true;
    stop_connection(*connection, "the connection has been closed");
    if (connection->unfinished != nullptr) queue_for_service(*connection);
    retired_.push_back(std::move(connection));
}

bool VerbsWire::is_over(const Connection& retired) {
    return retired.requests().under_way() == 0 && retired.unfinished == nullptr && !retired.needs_service;
}

void VerbsWire::destroy_retired(std::size_t count) {
    const auto end = retired_.begin() + static_cast<std::ptrdiff_t>(count);
    const auto gone = std::remove_if(retired_.begin(), end, [this](const auto& each) {
        if (!is_over(*each)) return false;
        by_number_.erase(each->pair().number());
        std::erase_if(events_, [&](const Event& event) { return event.queue_pair == each->pair().number(); });
        connections_[each->role().number] = nullptr;
        return true;
    });
    retired_.erase(gone, end);
}

void VerbsWire::queue_for_service(Connection& connection) {
    if (std::exchange(connection.needs_service, true)) return;
    service_queue_.push_back(&connection);
    // A completion would continue the work, but a thread may be waiting for arrivals only, and completions so far raise
    // no event.
    descriptor_.wake();
}

void VerbsWire::send_control(Connection& connection, std::uint32_t kind, Bytes bytes) {
    connection.control_queue.push_back({kind, std::move(bytes)});
    (void)send_queued_control(connection);
    if (!connection.control_queue.empty()) queue_for_service(connection);
}

// True when it sent something.
bool VerbsWire::send_queued_control(Connection& connection) {
    bool sent = false;
    while (!connection.control_queue.empty() && connection.ready() && connection.failure().ok()) {
        const Connection::ControlMessage& next = connection.control_queue.front();
        if (send_message(connection, next.bytes, {}, next.kind) != Code::ok) break;
        connection.control_queue.pop_front();
        sent = true;
    }
    return sent;
}

}  // namespace npushmem::verbs
