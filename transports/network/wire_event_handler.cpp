// SPDX-License-Identifier: BSD-3-Clause
#include "transports/network/wire_event_handler.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <bit>
#include <cstring>
#include <utility>

#include "core/base/liveness.hpp"

namespace npushmem::network {
namespace {

// A code that says nothing about the result, such as Code::again, does not reach the caller of the operation.
Code result_in(const Answer& answer) {
    const auto code = static_cast<Code>(answer.code);
    const bool is_result = code != Code::again && npushmem::name_of(code) != "unknown";
    return is_result ? code : Code::protocol;
}

// The answer of a peer that says goodbye may be on its way, and the wire would write it to memory that the caller has
// got back. The wire ends such an operation, at the latest when the peer closes the connection.
bool is_read_by_wire(const Operation& operation) {
    return operation.kind == Operation::Kind::read && operation.held_by_wire;
}

}  // namespace

WireEventHandler::WireEventHandler(Host host, int my_pe, const std::unique_ptr<Wire>& wire, EventQueue& events,
                                   PeerMonitor& peers, MessageKeys& keys, PeerLanes& lanes, const NetworkMemory& memory,
                                   OutgoingOperations& operations)
    : host_(std::move(host)),
      my_pe_(my_pe),
      wire_(wire),
      events_(events),
      peers_(peers),
      keys_(keys),
      lanes_(lanes),
      operations_(operations),
      target_(my_pe, memory.regions()) {}

void WireEventHandler::completed(WireContext& context, Code code, const std::string& why) {
    auto& operation = static_cast<Operation&>(context);
    operation.held_by_wire = false;
    Flow* const flow = operation.flow;
    if (flow != nullptr) {
        peers_.record_activity(flow->lane_id.pe);
        if (code != Code::ok && !ends_a_peer(code) && !flow->queue->pending_event)
            flow->queue->pending_event = {
                flow->lane_id.pe, fmt::format("an operation to {} failed: {}", peers_.name_of(flow->lane_id.pe), why)};
    }
    if (flow == nullptr || code != Code::ok || !operation.deferred_signal) {
        const LaneId lane_id = flow != nullptr ? flow->lane_id : LaneId{};
        operations_.finish(operation, code);
        if (lane_id.pe >= 0 && ends_a_peer(code)) lost(lane_id, code, why);
        return;
    }
    send_deferred_signal(operation);
}

void WireEventHandler::send_deferred_signal(Operation& operation) {
    Flow& flow = *operation.flow;
    // With Delivery::on_flush the same operation waits for the flush, before its signal is sent.
    if (wire_->traits().delivery == Delivery::on_flush && !std::exchange(operation.flushing, true)) {
        operation.held_by_wire = true;
        const Code posted = wire_->flush(flow.lane_id, operation);
        if (posted == Code::ok) return;
        operation.held_by_wire = false;
        return lanes_.report_loss(flow.lane_id, posted);
    }
    const AtomicRequest then = *operation.deferred_signal;
    flow.unhandled = true;  // set before sending: if that loses the lane, quiet reports it
    operations_.finish(operation, Code::ok);
    lanes_.send_or_queue(flow.lane_id, bytes_of(then));
}

// No event: an event would fail the program's next quiet, and a stranger must not end the job. Warns at growing
// intervals: a sender without end must not fill the log.
void WireEventHandler::reject() {
    if (!std::has_single_bit(++rejected_)) return;
    host_.log(LogLevel::warn,
              fmt::format("{} message{} that no PE of this job has sent arrived over {} and {} ignored: another job "
                          "or program sends to the address of PE {}",
                          rejected_, rejected_ == 1 ? "" : "s", wire_->traits().name, rejected_ == 1 ? "was" : "were",
                          my_pe_));
}

void WireEventHandler::arrived(std::span<const std::byte> message) {
    if (!keys_.is_authentic(message)) return reject();
    const auto head = parse_header(message);
    if (!head || !peers_.contains(head->origin))
        return events_.report(Code::protocol, -1,
                              fmt::format("{} bytes arrived over {} that are not a message of this version",
                                          message.size(), wire_->traits().name));
    peers_.record_activity(head->origin);
    if (head->kind == MessageKind::hello) return handle_hello(*head, message.subspan(sizeof *head));
    if (head->kind == MessageKind::answer) return handle_answer(*head, message);
    if (head->kind == MessageKind::pong) return;
    if (head->kind == MessageKind::goodbye) return forget(head->origin, &is_read_by_wire);
    if (head->kind == MessageKind::ping)
        return lanes_.send_or_queue({head->origin}, bytes_of(make_message<MessageHeader>(MessageKind::pong, my_pe_)));
    if (!TargetHandler::is_complete(*head, message))
        return events_.report(Code::protocol, head->origin,
                              fmt::format("{} sent a request over {} with {} bytes, which are too few",
                                          peers_.name_of(head->origin), wire_->traits().name, message.size()));
    const auto answer = target_.handle(*head, message);
    if (answer) lanes_.send_or_queue({head->origin}, bytes_of(*answer));
}

void WireEventHandler::handle_hello(const MessageHeader& head, std::span<const std::byte> payload) {
    SipKey key{};
    if (peers_.is_added(head.origin) || payload.size() < key.size()) return;
    std::ranges::copy(payload.first(key.size()), key.begin());
    keys_.set(head.origin, key);
    if (Status added = wire_->add_peer(head.origin, payload.subspan(key.size())); !added.ok())
        return events_.report(added.code(), head.origin,
                              fmt::format("cannot answer {}: {}", peers_.name_of(head.origin), added.message()));
    peers_.record_added(head.origin);
}

void WireEventHandler::handle_answer(const MessageHeader& head, std::span<const std::byte> message) {
    const auto answer = message_as<Answer>(message);
    Operation* const operation = answer ? operations_.find(answer->ticket) : nullptr;
    // Null: its queue was destroyed. Only the target of an operation can answer it.
    if (operation == nullptr || operation->held_by_wire || operation->lane_id.pe != head.origin) return;
    const Code code = result_in(*answer);
    if (code == Code::ok && operation->result != nullptr)
        std::memcpy(operation->result, &answer->value, operation->width);
    operations_.finish(*operation, code);
}

void WireEventHandler::lost(LaneId lane_id, Code code, const std::string& why) {
    const std::string reason = why.empty() ? std::string(npushmem::name_of(code)) : why;
    // Any code of lane 0 means that the peer is lost and that waits for it must end.
    if (lane_id.lane == 0 || ends_a_peer(code))
        lose_peer(lane_id.pe, ends_a_peer(code) ? code : Code::unreachable, reason);
    else
        lose_lane(lane_id, code, reason);
}

int WireEventHandler::end_peer(int pe, Code code, const Excepted& excepted) {
    lanes_.drop_backlogs(pe);
    target_.forget(pe);
    wire_->forget(pe);
    const auto lost = [&](const Operation& operation) {
        return operation.lane_id.pe == pe && !(excepted && excepted(operation));
    };
    const int failed = operations_.fail(lost, code);
    return failed + operations_.forget_peer(pe, code);
}

void WireEventHandler::lose_peer(int pe, Code code, const std::string& why) {
    if (!peers_.record_loss(pe, code)) return;
    const int failed = end_peer(pe, code);
    events_.report(code, pe,
                   fmt::format("{} is lost over {}: {}; {} operation{} under way", peers_.name_of(pe),
                               wire_->traits().name, why, failed, failed == 1 ? " was" : "s were"));
}

void WireEventHandler::forget(int pe, const Excepted& excepted) {
    if (!peers_.record_loss(pe, Code::peer_dead)) return;
    const int failed = end_peer(pe, Code::peer_dead, excepted);
    if (failed == 0) return;
    events_.report(Code::peer_dead, pe,
                   fmt::format("PE {} has died or finalized; {} operation{} under way to {} over {}", pe, failed,
                               failed == 1 ? " was" : "s were", peers_.name_of(pe), wire_->traits().name));
}

// Other queues can still reach the peer.
void WireEventHandler::lose_lane(LaneId lane_id, Code code, const std::string& why) {
    lanes_.lose(lane_id, code);
    const auto users = operations_.lose_lane(lane_id, code);
    const int failed =
        operations_.fail([lane_id](const Operation& operation) { return operation.lane_id == lane_id; }, code);
    for (OutgoingQueue* queue : users)
        queue->pending_event = {lane_id.pe,
                                fmt::format("a context's own lane to {} is lost over {}: {}; {} operation{} under way",
                                            peers_.name_of(lane_id.pe), wire_->traits().name, why, failed,
                                            failed == 1 ? " was" : "s were")};
}

// The probe of the last tick has been answered meanwhile: waiting for the answer would hold the transport's lock.
void WireEventHandler::check_peer(int pe) {
    if (wire_->end_probe(pe))
        return lost({pe}, Code::peer_dead, "its host refuses connections to it (has its process ended?)");
    const auto found = peers_.check(pe);
    if (found == PeerMonitor::Finding::silent) return lost({pe}, Code::timeout, peers_.silence_of(pe));
    if (found != PeerMonitor::Finding::needs_ping) return;
    const Code sent = lanes_.send({pe}, bytes_of(make_message<MessageHeader>(MessageKind::ping, my_pe_)));
    if (sent == Code::again) wire_->start_probe(pe);
}

void WireEventHandler::check_peers() {
    for (int pe = 0; pe < peers_.count(); ++pe) check_peer(pe);
}

}  // namespace npushmem::network
