// Progress: completions, connect messages, keys, and device events.
#include <arpa/inet.h>
#include <fmt/format.h>

#include <algorithm>

#include "transports/verbs/connect_message.hpp"
#include "transports/verbs/verbs_library.hpp"
#include "transports/verbs/verbs_wire.hpp"
#include "transports/verbs/work_request.hpp"

namespace npushmem::verbs {
namespace {

using network::WireListener;

}  // namespace

bool VerbsWire::progress(WireListener& listener) {
    if (!port_) return false;
    bool active = report_failures(listener);
    active = complete(listener) || active;
    if (!service_queue_.empty()) active = serve_connections(listener) || active;
    if (!pending_connects_.empty()) active = retry_connects(listener) || active;
    if (!active && --until_event_check_ == 0) active = handle_async_events(listener);
    return active;
}

bool VerbsWire::report_failures(WireListener& listener) {
    if (failed_.empty()) return false;
    const auto failed = std::exchange(failed_, {});
    for (const auto& each : failed) listener.completed(*each.context, each.why.code(), each.why.message());
    return true;
}

bool VerbsWire::complete(WireListener& listener) {
    bool before = false;
    if (!polled_.empty()) {
        for (const auto& completion : std::exchange(polled_, {})) completed(listener, completion);
        before = true;
    }
    const std::size_t stopped = retired_.size();  // retired before this poll: nothing more completes on them
    std::array<ibv_wc, polled_at_once> found;
    const int count = port_->completions().poll(found);
    for (int i = 0; i < count; ++i) completed(listener, found[static_cast<std::size_t>(i)]);
    if (count < 0) lose_all(listener, {Code::system, fmt::format("ibv_poll_cq failed ({})", count)});
    if (stopped > 0 && count < static_cast<int>(polled_at_once)) destroy_retired(stopped);
    if (!unposted_receives_.empty())
        std::erase_if(unposted_receives_, [this](std::size_t index) { return post_receive(index).ok(); });
    return count > 0 || before;
}

void VerbsWire::completed(WireListener& listener, const ibv_wc& completion) {
    switch (WorkRequestId::of(completion.wr_id).kind) {
        case WorkRequestId::Kind::post: return posted_completed(listener, completion);
        case WorkRequestId::Kind::receive: return received(listener, completion);
        case WorkRequestId::Kind::handshake_send: return handshake_->sent(completion);
        case WorkRequestId::Kind::handshake_receive:
            if (const auto message = handshake_->received(completion)) handle_connect_message(listener, *message);
            return;
    }
}

void VerbsWire::posted_completed(WireListener& listener, const ibv_wc& completion) {
    const WorkRequestId number = WorkRequestId::of(completion.wr_id);
    Connection& connection = *connections_[number.connection];
    // The waiting caller got the failure and owns its memory again, even if this request succeeded.
    const bool given_up = !connection.failure().ok();
    const bool failed = completion.status != IBV_WC_SUCCESS;
    if (failed) {
        const std::string text =
            fmt::format("work request {}: {} (status {}, vendor {:#x}); {}{}", number.which,
                        library_->wc_status_str(completion.status), static_cast<int>(completion.status),
                        completion.vendor_err, hint_for(completion.status), port_change_hints());
        // Stopping a lane does not lose the peer.
        const bool stopped = completion.status == IBV_WC_WR_FLUSH_ERR && connection.role().lane_id.lane > 0;
        if (connection.failure().ok()) connection.fail({stopped ? Code::system : code_of(completion.status), text});
    }
    std::uint32_t retired = 0;
    connection.requests().retire(number.which, [&](const CompletionAction& posted, bool is_last) {
        ++retired;
        finish(listener, posted, given_up || (failed && is_last) ? connection.failure() : ok_status_);
    });
    in_flight_ -= retired;
    if (failed) return lose(listener, connection, connection.failure());
    if (connection.requests().burst_is_open()) {
        const std::uint32_t under_way = connection.requests().under_way();
        if (connection.finish_burst() != Code::ok) return lose(listener, connection, connection.failure());
        in_flight_ += connection.requests().under_way() - under_way;
    }
}

void VerbsWire::finish(WireListener& listener, const CompletionAction& posted, const Status& done) {
    switch (posted.kind) {
        case CompletionAction::Kind::nothing: return;
        case CompletionAction::Kind::context:
            return listener.completed(*static_cast<network::WireContext*>(posted.what), done.code(), done.message());
        case CompletionAction::Kind::word: return fetched(listener, static_cast<std::byte*>(posted.what), done);
        case CompletionAction::Kind::transfer: return transferred(listener, *static_cast<Transfer*>(posted.what), done);
        case CompletionAction::Kind::message: return sends_->release(static_cast<std::byte*>(posted.what));
    }
}

void VerbsWire::fetched(WireListener& listener, std::byte* word, const Status& done) {
    const Fetch fetch = fetches_[words_->index_of(word)];
    if (done.ok() && fetch.copy_to != nullptr) std::memcpy(fetch.copy_to, word, fetch.width);
    words_->release(word);
    listener.completed(*fetch.context, done.code(), done.message());
}

void VerbsWire::transferred(WireListener& listener, Transfer& transfer, const Status& done) {
    if (done.ok() && transfer.copy_to != nullptr) std::memcpy(transfer.copy_to, transfer.buffer, transfer.copy_size);
    network::WireContext* const context = transfer.context;
    release(transfer);
    if (context != nullptr) listener.completed(*context, done.code(), done.message());
}

void VerbsWire::received(WireListener& listener, const ibv_wc& completion) {
    const std::size_t index = WorkRequestId::of(completion.wr_id).which;
    if (completion.status == IBV_WC_SUCCESS) {
        const auto from = by_number_.find(completion.qp_num);
        const std::span<const std::byte> message(receives_->at(index), completion.byte_len);
        if (from != by_number_.end()) from->second->set_peer_ready();  // a sending peer is also ready to receive
        if ((completion.wc_flags & IBV_WC_WITH_IMM) == 0)
            listener.arrived(message);
        else if (from != by_number_.end())
            handle_control(*from->second, ntohl(completion.imm_data), message);
    }
    if (!post_receive(index).ok()) unposted_receives_.push_back(index);
}

void VerbsWire::handle_control(Connection& connection, std::uint32_t kind, std::span<const std::byte> bytes) {
    if (kind == KeyRequest::kind) {
        const auto request = plain_from<KeyRequest>(bytes);
        if (!request) return;
        KeyReply answer;
        answer.key = request->key;
        answer.chunk = request->chunk;
        const auto rkey = memory_->rkey(request->region, request->chunk);
        if (rkey.ok()) answer.rkey = rkey.value();
        answer.code = static_cast<std::int32_t>(rkey.ok() ? Code::ok : rkey.status().code());
        if (!rkey.ok()) (void)rkey.status().message().copy(answer.why.data(), answer.why.size() - 1);
        return send_control(connection, KeyReply::kind, bytes_from(answer));
    }
    const auto answer = plain_from<KeyReply>(bytes);
    if (kind != KeyReply::kind || !answer) return;
    RemoteMemory* const asked = answer->key - 1 < remote_.size() ? remote_[answer->key - 1].get() : nullptr;
    if (asked == nullptr || asked->pe() != connection.pe()) return;
    if (answer->code == 0) return asked->set_key(answer->chunk, answer->rkey);
    asked->set_failure(answer->chunk,
                       {static_cast<Code>(answer->code), fmt::format("the peer reports: {}", answer->why.data())});
}

void VerbsWire::handle_connect_message(WireListener& listener, const ConnectMessage& message) {
    const bool of_this_job = message.to_nonce == nonce_ && message.pe >= 0 && message.pe != local_pe_.pe &&
                             static_cast<std::size_t>(message.pe) < peers_.size();
    if (!of_this_job) return;
    Peer& from = peer(message.pe);
    if (!from.port_address) from.port_address = message.from;
    if (from.port_address->nonce != message.from.nonce) return;
    if (message.lane == 0) return handle_first_lane_message(listener, message);
    if (message.kind == ConnectMessage::Kind::request) return accept_lane_request(message);
    handle_lane_answer(listener, message);
}

void VerbsWire::handle_first_lane_message(WireListener& listener, const ConnectMessage& message) {
    if (message.kind == ConnectMessage::Kind::refusal) return handle_rejection(listener, message.pe);
    Status s = make_connection({message.pe});
    const Lane& first = lane({message.pe});
    if (s.ok()) s = first.connection->connect(message);
    if (s.ok() && message.kind == ConnectMessage::Kind::request)
        s = send_connect_message({message.pe}, 0, ConnectMessage::Kind::answer, first.connection.get());
    if (!s.ok()) {
        // Otherwise the peer repeats its request until it times out.
        if (message.kind == ConnectMessage::Kind::request)
            (void)send_connect_message({message.pe}, 0, ConnectMessage::Kind::refusal, nullptr);
        if (first.connection && first.connection->failure().ok()) first.connection->fail(s);
        return listener.lost({message.pe}, s.code(), s.message());
    }
    if (message.kind == ConnectMessage::Kind::answer) first.connection->set_peer_ready();
    if (first.connection->ready() && !first.connection->control_queue.empty()) queue_for_service(*first.connection);
}

void VerbsWire::handle_rejection(WireListener& listener, int pe) {
    const Lane& first = lane({pe});
    if (!first.connection || first.connection->ready()) return;  // late
    lose(listener, *first.connection,
         {Code::unreachable,
          "the peer could not create its queue pair for this PE, or no longer uses this PE; the "
          "peer's messages give the reason"});
}

// The peer requests a lane for its sends. It has closed the earlier generation of the lane.
void VerbsWire::accept_lane_request(const ConnectMessage& message) {
    const network::LaneId lane_id{message.pe, message.lane};
    auto& inbound = peer(message.pe).inbound;
    const auto known = inbound.find(message.lane);
    if (known != inbound.end() && known->second.generation > message.generation) return;  // late
    Status s;
    if (known == inbound.end() || known->second.generation < message.generation) s = accept_lane(message);
    const bool ok = s.ok();
    const Connection* const taken = ok ? inbound.at(message.lane).connection.get() : nullptr;
    // If the answer is not sent, the peer requests it again.
    (void)send_connect_message(lane_id, message.generation,
                               ok ? ConnectMessage::Kind::answer : ConnectMessage::Kind::refusal, taken);
}

Status VerbsWire::accept_lane(const ConnectMessage& message) {
    auto& inbound = peer(message.pe).inbound;
    if (const auto old = inbound.find(message.lane); old != inbound.end()) {
        retire(std::move(old->second.connection));
        inbound.erase(old);
    }
    auto made = new_connection({message.pe, message.lane}, true);
    if (!made.ok()) return made.status();
    Status s = made.value()->connect(message);
    if (!s.ok()) {
        retire(std::move(made).value());
        return s;
    }
    inbound.emplace(message.lane, InboundLane{std::move(made).value(), message.generation});
    return {};
}

void VerbsWire::handle_lane_answer(WireListener& listener, const ConnectMessage& message) {
    if (message.lane >= peer(message.pe).lanes.size()) return;  // this PE has not requested it
    const network::LaneId lane_id{message.pe, message.lane};
    const Lane& own = lane(lane_id);
    if (!own.connection || own.generation != message.generation || own.connection->ready()) return;
    Status s = message.kind == ConnectMessage::Kind::answer
                   ? own.connection->connect(message)
                   : Status{Code::system,
                            "the peer could not create a queue pair for a context (NPUSHMEM_VERBS_LANES "
                            "reduces their number)"};
    if (s.ok()) return own.connection->set_peer_ready();
    lose(listener, *own.connection, std::move(s));
}

bool VerbsWire::retry_connects(WireListener& listener) {
    bool sent = false;
    const auto now = now_();
    std::vector<network::LaneId> unreachable;
    std::erase_if(pending_connects_, [&](PendingConnect& connecting) {
        Lane& of = lane(connecting.lane_id);
        if (of.connection && (of.connection->ready() || !of.connection->failure().ok())) {
            of.connecting = false;
            return true;
        }
        if (now < connecting.retry_at || !of.connection) return false;
        connecting.retry_at = now + connect_retry_interval;
        sent = true;
        if (Status s = send_connect_request(connecting.lane_id); !s.ok()) of.connection->fail(std::move(s));
        if (!of.connection->failure().ok()) unreachable.push_back(connecting.lane_id);
        return false;
    });
    for (const network::LaneId lane_id : unreachable) {
        const Status why = lane(lane_id).connection->failure();
        listener.lost(lane_id, why.code(), why.message());
    }
    return sent;
}

bool VerbsWire::serve(WireListener& listener, Connection& connection) {
    bool happened = send_queued_control(connection);
    auto* const unfinished = static_cast<Transfer*>(static_cast<void*>(connection.unfinished));
    if (unfinished == nullptr) return happened;
    if (connection.failure().ok()) {
        const std::uint64_t before = unfinished->left;
        const Code posted = post_remaining(connection, *unfinished);
        if (posted == Code::ok) connection.unfinished = nullptr;
        if (posted != Code::ok && posted != Code::again) lose(listener, connection, connection.failure());
        return happened || unfinished->left != before || posted == Code::ok;
    }
    if (connection.requests().under_way() > 0) return happened;  // the device may still access its memory
    connection.unfinished = nullptr;
    transferred(listener, *unfinished, connection.failure());
    return true;
}

bool VerbsWire::serve_connections(WireListener& listener) {
    bool happened = false;
    const auto to_serve = std::exchange(service_queue_, {});
    for (Connection* connection : to_serve) {
        connection->needs_service = false;
        happened = serve(listener, *connection) || happened;
        const bool has_control = !connection->control_queue.empty() && connection->failure().ok();
        if (has_control || connection->unfinished != nullptr) queue_for_service(*connection);
    }
    return happened;
}

void VerbsWire::lose(WireListener& listener, Connection& connection, Status why) {
    connection.fail(std::move(why));
    if (connection.unfinished != nullptr) queue_for_service(connection);
    // The sender of an inbound lane notices the loss itself. A retired connection's lane may have another one now.
    if (connection.role().inbound || connection.retired) return;
    const Status reason = connection.failure();
    listener.lost(connection.role().lane_id, reason.code(), reason.message());
}

void VerbsWire::lose_all(WireListener& listener, const Status& why) {
    for (auto& [number, connection] : by_number_) lose(listener, *connection, why);
}

bool VerbsWire::handle_async_events(WireListener& listener) {
    until_event_check_ = polls_per_event_check;
    drain_async_events();
    const auto events = std::exchange(events_, {});
    for (const Event& each : events) handle_async_event(listener, each);
    return !events.empty();
}

void VerbsWire::drain_async_events() {
    ibv_async_event event{};
    while (library_->take_async_event(port_->context(), &event) == 0) {
        const bool of_a_pair = event.event_type == IBV_EVENT_QP_FATAL || event.event_type == IBV_EVENT_QP_REQ_ERR ||
                               event.event_type == IBV_EVENT_QP_ACCESS_ERR;
        events_.push_back({event.event_type, of_a_pair ? event.element.qp->qp_num : 0});
    }
}

std::string VerbsWire::port_change_hints() const {
    std::string out;
    if (!port_hint_.empty()) out += "; " + port_hint_;
    if (!address_hint_.empty()) out += "; " + address_hint_ + ", and peers know the old one: start the job again";
    return out;
}

void VerbsWire::handle_async_event(WireListener& listener, const Event& event) {
    const char* const text = library_->event_type_str(event.type);
    switch (event.type) {
        case IBV_EVENT_QP_FATAL:
        case IBV_EVENT_QP_REQ_ERR:
        case IBV_EVENT_QP_ACCESS_ERR: {
            const auto found = by_number_.find(event.queue_pair);
            if (found != by_number_.end())
                lose(listener, *found->second,
                     {found->second->role().lane_id.lane == 0 ? Code::peer_dead : Code::system,
                      fmt::format("its queue pair stopped: {}{}", text, port_change_hints())});
            return;
        }
        case IBV_EVENT_PORT_ERR: port_hint_ = fmt::format("port {} went down", port_->name()); return;
        case IBV_EVENT_PORT_ACTIVE: port_hint_.clear(); return;
        case IBV_EVENT_LID_CHANGE:
        case IBV_EVENT_GID_CHANGE:
        case IBV_EVENT_PKEY_CHANGE: address_hint_ = port_->describe_changes(); return;
        case IBV_EVENT_CQ_ERR:
        case IBV_EVENT_SRQ_ERR:  // without receives no message arrives
        case IBV_EVENT_DEVICE_FATAL:
            return lose_all(listener, {Code::unreachable, fmt::format("RDMA port {}: {}", port_->name(), text)});
        default: return;
    }
}

bool VerbsWire::prepare_to_wait(network::WakeEvents what) {
    if (!port_) return true;
    // All messages are solicited. Waking for the completions of this PE's own operations would wake the thread for
    // every put without need.
    const bool solicited_only = what == network::WakeEvents::arrivals;
    // A thread may be waiting for arrivals only already, and the caller may find no work either.
    if (!solicited_only && !port_->completions().request_event(false)) return false;
    const bool busy = !pending_connects_.empty() || !service_queue_.empty() || !failed_.empty() ||
                      !unposted_receives_.empty() || !polled_.empty() || !events_.empty() ||
                      std::any_of(retired_.begin(), retired_.end(), [](const auto& each) { return is_over(*each); });
    if (busy) return false;
    descriptor_.rest();
    port_->completions().drain_events();
    if (!port_->completions().request_event(solicited_only)) return false;
    polled_.resize(polled_at_once);
    const int count = port_->completions().poll(polled_);
    polled_.resize(static_cast<std::size_t>(std::max(count, 0)));
    drain_async_events();
    if (!events_.empty()) until_event_check_ = 1;
    return count == 0 && events_.empty();
}

}  // namespace npushmem::verbs
