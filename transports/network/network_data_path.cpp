// Posting, fences and completion. A fence is free when the wire keeps the order. Otherwise the next operation to the
// same peer waits until earlier ones are delivered.
#include <fmt/format.h>

#include "npushmem/plugin/local_atomic.hpp"
#include "transports/network/network_transport.hpp"

namespace npushmem::network {

template <class Message>
Message NetworkTransport::message(MessageKind kind) const {
    Message out;
    if constexpr (std::is_same_v<Message, MessageHeader>) {
        out.kind = kind;
        out.origin = my_pe_;
    } else {
        out.head.kind = kind;
        out.head.origin = my_pe_;
    }
    return out;
}
template MessageHeader NetworkTransport::message<MessageHeader>(MessageKind) const;
template FlushRequest NetworkTransport::message<FlushRequest>(MessageKind) const;

Code NetworkTransport::report_to_caller(OutgoingQueue& queue, Code code) {
    if (code == Code::ok || code == Code::again || !queue.pending_event) return code;
    report_event(code, queue.pending_event->first, queue.pending_event->second);
    queue.pending_event.reset();
    return code;
}

Code NetworkTransport::resolve_target(std::uint64_t queue, std::uint64_t remote, int pe, std::uint64_t offset,
                                      std::uint64_t bytes, Target& out) {
    const auto found = queues_.find(queue);
    const Remote* const window = remotes_.find(remote);
    if (found == queues_.end() || window == nullptr || window->pe != pe) return Code::argument;
    if (!window->has(offset, bytes)) return Code::range;
    if (const Code lost = peers_[static_cast<std::size_t>(pe)].failed; lost != Code::ok) return lost;
    out = {found->second.get(), window, &found->second->flow(pe, [&] { return acquire_lane(pe); })};
    return report_to_caller(*out.queue, out.flow->lost);
}

void NetworkTransport::start_message_flush(Flow& flow) {
    Operation& operation = operations_.take(Operation::Kind::flush, flow);
    operation.flow = nullptr;  // sending may lose the lane and its operations in flight
    FlushRequest request = message<FlushRequest>(MessageKind::flush);
    request.ticket = operation.ticket;
    request.queue = flow.queue->number;
    if (send(flow.lane_id, bytes_of(request)) != Code::ok) return operations_.release(operation);
    operation.flow = &flow;
    flow.unhandled = false;
    if (ordered()) flow.undelivered = false;
    ++flow.flushes;
    ++flow.queue->outstanding;
}

void NetworkTransport::start_wire_flush(Flow& flow) {
    Operation& operation = operations_.take(Operation::Kind::flush, flow);
    operation.held_by_wire = true;
    flow.undelivered = false;
    ++flow.flushes;
    ++flow.queue->outstanding;
    const Code posted = wire_->flush(flow.lane_id, operation);
    if (posted == Code::ok) return;
    operation.held_by_wire = false;
    if (posted == Code::again) {
        flow.undelivered = true;
        --flow.flushes;
        --flow.queue->outstanding;
        return operations_.release(operation);
    }
    lost(flow.lane_id, posted, wire_->last_error());
}

bool NetworkTransport::poll_delivery(Flow& flow, bool writes, bool requests) {
    if (writes && flow.undelivered && wire_->traits().delivery == Delivery::on_flush) start_wire_flush(flow);
    if ((requests && flow.unhandled) || (writes && flow.undelivered && ordered())) start_message_flush(flow);
    const bool written = flow.writes == 0 && !flow.undelivered;
    const bool handled = flow.fetches == 0 && !flow.unhandled;
    return flow.flushes == 0 && (written || !writes) && (handled || !requests);
}

// An in-order wire delivers writes and requests in the order of posting, but a later write may arrive before the
// handler has processed an earlier request. A signal that waits for its data's completion is not posted yet. Striped
// transfers are overtaken.
bool NetworkTransport::may_post(Flow& flow, PostKind kind) {
    if (!flow.fenced) return true;
    const bool request = kind == PostKind::request;
    const bool overtaken = !ordered() || flow.signals > 0 || !wire_->in_order(flow.lane_id);
    if (!overtaken && request) return true;
    if (!poll_delivery(flow, overtaken, !request)) return false;
    flow.fenced = request && flow.unhandled;
    return true;
}

// `post` passes the operation, which is counted already, to the wire.
template <class PostOnWire>
Code NetworkTransport::transfer(Flow& flow, Operation& operation, PostOnWire&& post) {
    operation.held_by_wire = true;
    flow.queue->mark_active(flow);
    ++flow.queue->outstanding;
    const bool write = operation.kind == Operation::Kind::write;
    if (write) ++flow.writes;
    const Code posted = post();
    if (posted == Code::ok) {
        if (write && !completion_means_delivery()) flow.undelivered = true;
        return Code::ok;
    }
    if (write) --flow.writes;
    if (operation.deferred_signal) --flow.signals;
    --flow.queue->outstanding;
    operations_.release(operation);
    if (posted != Code::again) lost(flow.lane_id, posted, wire_->last_error());
    return posted;
}

Code NetworkTransport::put(std::uint64_t queue, const npushmem_rma& op, std::uint64_t* token) {
    return rma(Operation::Kind::write, queue, op, token);
}

Code NetworkTransport::get(std::uint64_t queue, const npushmem_rma& op, std::uint64_t* token) {
    return rma(Operation::Kind::read, queue, op, token);
}

Code NetworkTransport::rma(Operation::Kind kind, std::uint64_t queue, const npushmem_rma& op, std::uint64_t* token) {
    const Lock guard(lock_);
    Target target;
    if (const Code resolved = resolve_target(queue, op.remote, op.pe, op.offset, op.bytes, target);
        resolved != Code::ok)
        return resolved;
    if (token != nullptr) *token = 0;
    if (op.bytes == 0) return Code::ok;
    if (op.local == nullptr) return Code::argument;
    const bool read = kind == Operation::Kind::read;
    if (!read && op.bytes <= wire_->traits().write_as_message_bytes) return request_put(target, op);
    if (!may_post(*target.flow, PostKind::transfer)) return Code::again;
    Operation& operation = operations_.take(kind, *target.flow);
    // The wire has copied a short write when it is posted: the caller needs no completion.
    operation.has_token = token != nullptr && (read || op.bytes > wire_->traits().inject_bytes);
    const std::uint64_t ticket = operation.has_token ? operation.ticket : 0;
    const Code posted = transfer(*target.flow, operation, [&] {
        const RemoteAddress there = target.remote->at(target.flow->lane_id, op.offset);
        return read ? wire_->read(there, op.local, op.bytes, operation)
                    : wire_->write(there, op.local, op.bytes, operation);
    });
    if (posted == Code::ok && token != nullptr) *token = ticket;
    return posted;
}

// The message contains the data: the source is free again.
Code NetworkTransport::request_put(const Target& target, const npushmem_rma& op) {
    Flow& flow = *target.flow;
    if (!may_post(flow, PostKind::request)) return Code::again;
    PutRequest request = message<PutRequest>(MessageKind::put);
    request.region = target.remote->region;
    request.offset = op.offset;
    request.bytes = static_cast<std::uint16_t>(op.bytes);
    request.queue = flow.queue->number;
    const Code sent = send(flow.lane_id, bytes_of(request), {static_cast<const std::byte*>(op.local), op.bytes});
    if (sent != Code::ok) return sent;
    flow.queue->mark_active(flow);
    flow.unhandled = true;
    return Code::ok;
}

Code NetworkTransport::atomic(std::uint64_t queue, const npushmem_atomic& op, std::uint64_t* token) {
    const Lock guard(lock_);
    if (op.operation >= NPUSHMEM_ATOMIC_COUNT || (op.width != 4 && op.width != 8)) return Code::argument;
    Target target;
    if (const Code resolved = resolve_target(queue, op.remote, op.pe, op.offset, op.width, target);
        resolved != Code::ok)
        return resolved;
    if ((target.remote->base + op.offset) % op.width != 0) return Code::argument;
    if (fetches(op.operation) && op.result == nullptr) return Code::argument;
    if (token != nullptr) *token = 0;
    const WireTraits& traits = wire_->traits();
    const std::uint32_t native = op.width == 4 ? traits.atomic_32 : traits.atomic_64;
    return (native >> op.operation & 1U) != 0 ? wire_atomic(target, op, token) : request_atomic(target, op, token);
}

Code NetworkTransport::wire_atomic(const Target& target, const npushmem_atomic& op, std::uint64_t* token) {
    Flow& flow = *target.flow;
    if (!may_post(flow, PostKind::transfer)) return Code::again;
    // A fetching update is also an update: deliveries after a fence must follow it.
    const bool pure_fetch = op.operation == NPUSHMEM_ATOMIC_FETCH;
    Operation& operation = operations_.take(pure_fetch ? Operation::Kind::read : Operation::Kind::write, flow);
    operation.has_token = token != nullptr && fetches(op.operation);
    const std::uint64_t ticket = operation.has_token ? operation.ticket : 0;
    const Code posted = transfer(
        flow, operation, [&] { return wire_->atomic(target.remote->at(flow.lane_id, op.offset), op, operation); });
    if (posted == Code::ok && token != nullptr) *token = ticket;
    return posted;
}

Code NetworkTransport::request_atomic(const Target& target, const npushmem_atomic& op, std::uint64_t* token) {
    Flow& flow = *target.flow;
    if (!may_post(flow, PostKind::request)) return Code::again;
    AtomicRequest request = message<AtomicRequest>(MessageKind::atomic);
    request.region = target.remote->region;
    request.offset = op.offset;
    request.operand = op.operand;
    request.compare = op.compare;
    request.operation = op.operation;
    request.width = op.width;
    request.queue = flow.queue->number;
    Operation* const fetch = fetches(op.operation) ? &operations_.take(Operation::Kind::fetch, flow) : nullptr;
    if (fetch != nullptr) {
        request.ticket = fetch->ticket;
        fetch->result = op.result;
        fetch->width = op.width;
        fetch->has_token = token != nullptr;
        fetch->flow = nullptr;  // as in start_message_flush
    }
    if (const Code sent = send(flow.lane_id, bytes_of(request)); sent != Code::ok) {
        if (fetch != nullptr) operations_.release(*fetch);
        return sent;
    }
    flow.queue->mark_active(flow);
    if (fetch == nullptr) {
        flow.unhandled = true;
        return Code::ok;
    }
    fetch->flow = &flow;
    ++flow.fetches;
    ++flow.queue->outstanding;
    if (token != nullptr) *token = fetch->ticket;
    return Code::ok;
}

Code NetworkTransport::put_signal(std::uint64_t queue, const npushmem_put_signal& op, std::uint64_t* token) {
    const Lock guard(lock_);
    Target target;
    const npushmem_rma& data = op.data;
    if (const Code resolved = resolve_target(queue, data.remote, data.pe, data.offset, data.bytes, target);
        resolved != Code::ok)
        return resolved;
    Target signal;
    const Code resolved = resolve_target(queue, op.signal_remote, data.pe, op.signal_offset, sizeof op.signal, signal);
    if (resolved != Code::ok) return resolved;
    if (op.operation > NPUSHMEM_SIGNAL_ADD || (signal.remote->base + op.signal_offset) % sizeof op.signal != 0)
        return Code::argument;
    if (data.bytes > 0 && data.local == nullptr) return Code::argument;
    if (token != nullptr) *token = 0;
    if ((wire_->traits().signals >> op.operation & 1U) != 0) return wire_put_signal(target, *signal.remote, op, token);
    if (data.bytes + sizeof(PutSignalRequest) > wire_->traits().message_bytes) {
        AtomicRequest then = message<AtomicRequest>(MessageKind::atomic);
        then.region = signal.remote->region;
        then.offset = op.signal_offset;
        then.operand = op.signal;
        then.operation = op.operation == NPUSHMEM_SIGNAL_ADD ? NPUSHMEM_ATOMIC_ADD : NPUSHMEM_ATOMIC_SET;
        then.width = sizeof op.signal;
        then.queue = target.queue->number;
        return put_then_signal(target, op, then, token);
    }
    if (!may_post(*target.flow, PostKind::request)) return Code::again;
    PutSignalRequest request = message<PutSignalRequest>(MessageKind::put_signal);
    request.region = target.remote->region;
    request.offset = data.offset;
    request.signal_region = signal.remote->region;
    request.signal_offset = op.signal_offset;
    request.signal = op.signal;
    request.bytes = static_cast<std::uint16_t>(data.bytes);
    request.operation = static_cast<std::uint8_t>(op.operation);
    request.queue = target.queue->number;
    const Code sent =
        send(target.flow->lane_id, bytes_of(request), {static_cast<const std::byte*>(data.local), data.bytes});
    if (sent != Code::ok) return sent;
    target.queue->mark_active(*target.flow);
    target.flow->unhandled = true;
    return Code::ok;
}

Code NetworkTransport::wire_put_signal(const Target& target, const Remote& signal, const npushmem_put_signal& op,
                                       std::uint64_t* token) {
    Flow& flow = *target.flow;
    if (!may_post(flow, PostKind::transfer)) return Code::again;
    Operation& operation = operations_.take(Operation::Kind::write, flow);
    operation.has_token = token != nullptr && op.data.bytes > wire_->traits().inject_bytes;
    const std::uint64_t ticket = operation.has_token ? operation.ticket : 0;
    const Code posted = transfer(flow, operation, [&] {
        return wire_->write_signal(target.remote->at(flow.lane_id, op.data.offset), op.data.local, op.data.bytes,
                                   signal.at(flow.lane_id, op.signal_offset), op.signal, operation);
    });
    if (posted == Code::ok && token != nullptr) *token = ticket;
    if (posted == Code::ok && !wire_->in_order(flow.lane_id)) arm_for_completions();  // the signal is not posted yet
    return posted;
}

// For data too long for a message. Unless the wire keeps the order and cannot report delivery, the signal leaves when
// the data is delivered: failed data has no signal.
Code NetworkTransport::put_then_signal(const Target& target, const npushmem_put_signal& op, const AtomicRequest& signal,
                                       std::uint64_t* token) {
    Flow& flow = *target.flow;
    if (!may_post(flow, PostKind::transfer)) return Code::again;
    Operation& operation = operations_.take(Operation::Kind::write, flow);
    operation.has_token = token != nullptr;
    const bool defer_signal = !ordered() || completion_means_delivery();
    if (defer_signal) {
        operation.deferred_signal = signal;
        ++flow.signals;
    }
    const std::uint64_t ticket = operation.ticket;
    const Code posted = transfer(flow, operation, [&] {
        return wire_->write(target.remote->at(flow.lane_id, op.data.offset), op.data.local, op.data.bytes, operation);
    });
    if (posted != Code::ok) return posted;
    if (defer_signal) {
        arm_for_completions();
    } else {
        send_or_queue(flow.lane_id, bytes_of(signal));
        flow.unhandled = true;
        if (!lanes_with_backlog_.empty()) arm_for_room();
    }
    if (token != nullptr) *token = ticket;
    return Code::ok;
}

Code NetworkTransport::fence(std::uint64_t number) {
    const Lock guard(lock_);
    const auto found = queues_.find(number);
    if (found == queues_.end()) return Code::argument;
    for (Flow* flow : found->second->active) {
        flow->fenced = true;
        if (!ordered()) (void)poll_delivery(*flow, true, false);  // starts the flush early for the next operation
    }
    return Code::ok;
}

Code NetworkTransport::quiet(std::uint64_t number) {
    const Lock guard(lock_);
    const auto found = queues_.find(number);
    if (found == queues_.end()) return Code::argument;
    driven_.fetch_add(1, std::memory_order_relaxed);
    OutgoingQueue& queue = *found->second;
    // The missing events have often arrived and need only be polled.
    if (!poll_quiet(queue) && !(drive() && poll_quiet(queue))) return Code::again;
    return report_to_caller(queue, queue.take_failures());
}

bool NetworkTransport::poll_quiet(OutgoingQueue& queue) {
    std::erase_if(queue.active, [this](Flow* flow) {
        if (!poll_delivery(*flow, true, true)) return false;
        flow->fenced = flow->active = false;
        return true;
    });
    return queue.active.empty() && queue.outstanding == 0;
}

Code NetworkTransport::test(std::uint64_t number, std::uint64_t token) {
    const Lock guard(lock_);
    const auto found = queues_.find(number);
    if (found == queues_.end()) return Code::argument;
    if (token == 0) return Code::ok;
    driven_.fetch_add(1, std::memory_order_relaxed);
    if (operations_.find(token) != nullptr) (void)drive();
    const Operation* const operation = operations_.find(token);
    if (operation != nullptr && operation->flow != nullptr) return Code::again;
    return report_to_caller(*found->second, found->second->take_failure(token));
}

}  // namespace npushmem::network
