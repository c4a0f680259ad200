// SPDX-License-Identifier: BSD-3-Clause
#include "transports/network/initiator.hpp"

#include <array>

#include "core/base/block_copy.hpp"
#include "npushmem/plugin/local_atomic.hpp"

namespace npushmem::network {

Code Initiator::resolve_target(std::uint64_t queue, std::uint64_t remote, int pe, std::uint64_t offset,
                               std::uint64_t bytes, Target& out) {
    OutgoingQueue* const found = operations_.find_queue(queue);
    const RemoteRegion* const window = memory_.find_remote(remote);
    if (found == nullptr || window == nullptr || window->pe != pe) return Code::argument;
    if (!window->has(offset, bytes)) return Code::range;
    if (const Code lost = peers_.failure(pe); lost != Code::ok) return lost;
    out = {found, window, &found->flow(pe, [&] { return lanes_.acquire(pe); })};
    return operations_.report_to_caller(*out.queue, out.flow->lost);
}

// `post` passes the operation, which is counted already, to the wire.
template <class PostOnWire>
Code Initiator::transfer(Flow& flow, Operation& operation, PostOnWire&& post) {
    operation.held_by_wire = true;
    flow.queue->mark_active(flow);
    operations_.post(operation, flow);
    const bool write = operation.kind == Operation::Kind::write;
    const Code posted = post();
    if (posted == Code::ok) {
        if (write && !order_.completion_means_delivery()) flow.undelivered = true;
        return Code::ok;
    }
    operations_.drop(operation);
    if (posted != Code::again) lanes_.report_loss(flow.lane_id, posted);
    return posted;
}

Code Initiator::rma(Operation::Kind kind, std::uint64_t queue, const npushmem_rma& op, std::uint64_t* token) {
    Target target;
    if (const Code resolved = resolve_target(queue, op.remote, op.pe, op.offset, op.bytes, target);
        resolved != Code::ok)
        return resolved;
    if (token != nullptr) *token = 0;
    if (op.bytes == 0) return Code::ok;
    if (op.local == nullptr) return Code::argument;
    const bool read = kind == Operation::Kind::read;
    if (!read && op.bytes <= wire_->traits().write_as_message_bytes) return request_put(target, op);
    if (!order_.may_post(*target.flow, PostKind::transfer)) return Code::again;
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

Code Initiator::send_request(Flow& flow, std::span<const std::byte> request, std::span<const std::byte> data) {
    const Code sent = lanes_.send(flow.lane_id, request, data);
    if (sent != Code::ok) return sent;
    flow.queue->mark_active(flow);
    flow.unhandled = true;
    return Code::ok;
}

// The message contains the data: the source is free again.
Code Initiator::request_put(const Target& target, const npushmem_rma& op) {
    Flow& flow = *target.flow;
    if (!order_.may_post(flow, PostKind::request)) return Code::again;
    PutRequest request = make_message<PutRequest>(MessageKind::put, my_pe_);
    request.region = target.remote->region;
    request.offset = op.offset;
    request.bytes = static_cast<std::uint16_t>(op.bytes);
    request.queue = flow.queue->number;
    return send_request(flow, bytes_of(request), {static_cast<const std::byte*>(op.local), op.bytes});
}

Code Initiator::put_strided(std::uint64_t queue, const npushmem_put_strided& op, std::uint64_t* token) {
    const npushmem_rma& block = op.block;
    const std::uint64_t extent = extent_of(op);
    Target target;
    if (const Code resolved = resolve_target(queue, block.remote, block.pe, block.offset, extent, target);
        resolved != Code::ok)
        return resolved;
    if (token != nullptr) *token = 0;
    if (extent == 0) return Code::ok;
    if (block.local == nullptr) return Code::argument;
    Flow& flow = *target.flow;
    if (!order_.may_post(flow, PostKind::request)) return Code::again;
    PutStridedRequest request = make_message<PutStridedRequest>(MessageKind::put_strided, my_pe_);
    request.region = target.remote->region;
    request.offset = block.offset;
    request.stride = op.remote_stride;
    request.bytes = static_cast<std::uint16_t>(block.bytes);
    request.count = static_cast<std::uint16_t>(op.count);
    request.queue = flow.queue->number;
    std::array<std::byte, NPUSHMEM_PUT_STRIDED_MAX> data;
    copy_blocks({data.data(), block.bytes}, {static_cast<const std::byte*>(block.local), op.local_stride}, block.bytes,
                op.count);
    return send_request(flow, bytes_of(request), std::span(data).first(block.bytes * op.count));
}

Code Initiator::atomic(std::uint64_t queue, const npushmem_atomic& op, std::uint64_t* token) {
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

Code Initiator::wire_atomic(const Target& target, const npushmem_atomic& op, std::uint64_t* token) {
    Flow& flow = *target.flow;
    if (!order_.may_post(flow, PostKind::transfer)) return Code::again;
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

Code Initiator::request_atomic(const Target& target, const npushmem_atomic& op, std::uint64_t* token) {
    Flow& flow = *target.flow;
    if (!order_.may_post(flow, PostKind::request)) return Code::again;
    AtomicRequest request = make_message<AtomicRequest>(MessageKind::atomic, my_pe_);
    request.region = target.remote->region;
    request.offset = op.offset;
    request.operand = op.operand;
    request.compare = op.compare;
    request.operation = op.operation;
    request.width = op.width;
    request.queue = flow.queue->number;
    if (!fetches(op.operation)) return send_request(flow, bytes_of(request));
    Operation& fetch = operations_.take(Operation::Kind::fetch, flow);
    request.ticket = fetch.ticket;
    fetch.result = op.result;
    fetch.width = op.width;
    fetch.has_token = token != nullptr;
    if (const Code sent = lanes_.send(flow.lane_id, bytes_of(request)); sent != Code::ok) {
        operations_.drop(fetch);
        return sent;
    }
    flow.queue->mark_active(flow);
    operations_.post(fetch, flow);
    if (token != nullptr) *token = fetch.ticket;
    return Code::ok;
}

Code Initiator::put_signal(std::uint64_t queue, const npushmem_put_signal& op, std::uint64_t* token) {
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
    if (data.bytes + sizeof(PutSignalRequest) > wire_->traits().message_bytes)
        return put_then_signal(target, *signal.remote, op, token);
    return request_put_signal(target, *signal.remote, op);
}

Code Initiator::request_put_signal(const Target& target, const RemoteRegion& signal, const npushmem_put_signal& op) {
    if (!order_.may_post(*target.flow, PostKind::request)) return Code::again;
    PutSignalRequest request = make_message<PutSignalRequest>(MessageKind::put_signal, my_pe_);
    request.region = target.remote->region;
    request.offset = op.data.offset;
    request.signal_region = signal.region;
    request.signal_offset = op.signal_offset;
    request.signal = op.signal;
    request.bytes = static_cast<std::uint16_t>(op.data.bytes);
    request.operation = static_cast<std::uint8_t>(op.operation);
    request.queue = target.queue->number;
    return send_request(*target.flow, bytes_of(request), {static_cast<const std::byte*>(op.data.local), op.data.bytes});
}

Code Initiator::wire_put_signal(const Target& target, const RemoteRegion& signal, const npushmem_put_signal& op,
                                std::uint64_t* token) {
    Flow& flow = *target.flow;
    if (!order_.may_post(flow, PostKind::transfer)) return Code::again;
    Operation& operation = operations_.take(Operation::Kind::write, flow);
    operation.has_token = token != nullptr && op.data.bytes > wire_->traits().inject_bytes;
    const std::uint64_t ticket = operation.has_token ? operation.ticket : 0;
    const Code posted = transfer(flow, operation, [&] {
        return wire_->write_signal(target.remote->at(flow.lane_id, op.data.offset), op.data.local, op.data.bytes,
                                   signal.at(flow.lane_id, op.signal_offset), op.signal, operation);
    });
    if (posted == Code::ok && token != nullptr) *token = ticket;
    if (posted == Code::ok && !wire_->in_order(flow.lane_id))
        driver_.arm_for_completions();  // the signal is not posted yet
    return posted;
}

AtomicRequest Initiator::signal_request(const Target& target, const RemoteRegion& signal,
                                        const npushmem_put_signal& op) const {
    AtomicRequest request = make_message<AtomicRequest>(MessageKind::atomic, my_pe_);
    request.region = signal.region;
    request.offset = op.signal_offset;
    request.operand = op.signal;
    request.operation = op.operation == NPUSHMEM_SIGNAL_ADD ? NPUSHMEM_ATOMIC_ADD : NPUSHMEM_ATOMIC_SET;
    request.width = sizeof op.signal;
    request.queue = target.queue->number;
    return request;
}

// For data too long for a message. Unless the wire keeps the order and cannot report delivery, the signal leaves when
// the data is delivered: failed data has no signal.
Code Initiator::put_then_signal(const Target& target, const RemoteRegion& signal, const npushmem_put_signal& op,
                                std::uint64_t* token) {
    Flow& flow = *target.flow;
    if (!order_.may_post(flow, PostKind::transfer)) return Code::again;
    Operation& operation = operations_.take(Operation::Kind::write, flow);
    operation.has_token = token != nullptr;
    const bool defer_signal = !order_.ordered() || order_.completion_means_delivery();
    const AtomicRequest request = signal_request(target, signal, op);
    if (defer_signal) operation.deferred_signal = request;
    const std::uint64_t ticket = operation.ticket;
    const Code posted = transfer(flow, operation, [&] {
        return wire_->write(target.remote->at(flow.lane_id, op.data.offset), op.data.local, op.data.bytes, operation);
    });
    if (posted != Code::ok) return posted;
    if (defer_signal) {
        driver_.arm_for_completions();
    } else {
        lanes_.send_or_queue(flow.lane_id, bytes_of(request));
        flow.unhandled = true;
        if (lanes_.has_backlog()) driver_.arm_for_room();
    }
    if (token != nullptr) *token = ticket;
    return Code::ok;
}

}  // namespace npushmem::network
