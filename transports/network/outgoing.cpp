// SPDX-License-Identifier: BSD-3-Clause
#include "transports/network/outgoing.hpp"

namespace npushmem::network {

void DeliveryOrder::start_message_flush(Flow& flow) {
    Operation& operation = operations_.take(Operation::Kind::flush, flow);
    FlushRequest request = make_message<FlushRequest>(MessageKind::flush, my_pe_);
    request.ticket = operation.ticket;
    request.queue = flow.queue->number;
    if (lanes_.send(flow.lane_id, bytes_of(request)) != Code::ok) return operations_.drop(operation);
    operations_.post(operation, flow);
    flow.unhandled = false;
    if (ordered()) flow.undelivered = false;
}

void DeliveryOrder::start_wire_flush(Flow& flow) {
    Operation& operation = operations_.take(Operation::Kind::flush, flow);
    operation.held_by_wire = true;
    flow.undelivered = false;
    operations_.post(operation, flow);
    const Code posted = wire_->flush(flow.lane_id, operation);
    if (posted == Code::ok) return;
    operation.held_by_wire = false;
    if (posted == Code::again) {
        flow.undelivered = true;
        return operations_.drop(operation);
    }
    lanes_.report_loss(flow.lane_id, posted);
}

bool DeliveryOrder::poll_delivery(Flow& flow, bool writes, bool requests) {
    if (writes && flow.undelivered && wire_->traits().delivery == Delivery::on_flush) start_wire_flush(flow);
    if ((requests && flow.unhandled) || (writes && flow.undelivered && ordered())) start_message_flush(flow);
    const bool written = flow.writes == 0 && !flow.undelivered;
    const bool handled = flow.fetches == 0 && !flow.unhandled;
    return flow.flushes == 0 && (written || !writes) && (handled || !requests);
}

// An in-order wire delivers writes and requests in the order of posting, but over most a later write may arrive before
// the handler has processed an earlier request. A signal that waits for its data's completion is not posted yet.
// Striped transfers are overtaken.
bool DeliveryOrder::may_post_after_fence(Flow& flow, PostKind kind) {
    const bool request = kind == PostKind::request;
    const bool overtaken = !ordered() || flow.signals > 0 || !wire_->in_order(flow.lane_id);
    if (!overtaken && (request || (wire_->traits().messages_in_order && !lanes_.has_backlog(flow.lane_id))))
        return true;
    if (!poll_delivery(flow, overtaken, !request)) return false;
    flow.fenced = request && flow.unhandled;
    return true;
}

void DeliveryOrder::fence(const OutgoingQueue& queue) {
    for (Flow* flow : queue.active) {
        flow->fenced = true;
        if (!ordered()) (void)poll_delivery(*flow, true, false);  // starts the flush early for the next operation
    }
}

bool DeliveryOrder::poll_quiet(OutgoingQueue& queue) {
    std::erase_if(queue.active, [this](Flow* flow) {
        if (!poll_delivery(*flow, true, true)) return false;
        flow->fenced = flow->active = false;
        return true;
    });
    return queue.active.empty() && queue.outstanding == 0;
}

std::uint64_t OutgoingOperations::create_queue() {
    auto made = std::make_unique<OutgoingQueue>();
    made->number = static_cast<std::uint32_t>(++last_queue_);
    queues_.emplace(last_queue_, std::move(made));
    return last_queue_;
}

int OutgoingOperations::fail(const std::function<bool(const Operation&)>& lost, Code code) {
    int failed = 0;
    pool_.for_each([&](Operation& operation) {
        if (operation.flow == nullptr || !lost(operation)) return;
        ++failed;
        if (!operation.held_by_wire) return finish(operation, code);
        // The wire may still report it: end it now, release it then.
        end(operation, code);
        operation.flow = nullptr;
        operation.deferred_signal.reset();
    });
    return failed;
}

bool Flow::forget_delivery(Code code) {
    const bool unknown = undelivered || unhandled;
    if (unknown) queue->failures.emplace_back(0, code);
    undelivered = unhandled = fenced = false;
    return unknown;
}

int OutgoingOperations::forget_peer(int pe, Code code) {
    int unknown = 0;
    for (auto& [number, queue] : queues_)
        if (const auto flow = queue->flows.find(pe); flow != queue->flows.end())
            unknown += flow->second->forget_delivery(code) ? 1 : 0;
    return unknown;
}

std::vector<OutgoingQueue*> OutgoingOperations::lose_lane(LaneId lane_id, Code code) {
    std::vector<OutgoingQueue*> users;
    for (auto& [number, queue] : queues_) {
        const auto found = queue->flows.find(lane_id.pe);
        if (found == queue->flows.end() || found->second->lane_id != lane_id || found->second->lost != Code::ok)
            continue;
        found->second->lost = code;
        (void)found->second->forget_delivery(code);
        users.push_back(queue.get());
    }
    return users;
}

bool OutgoingOperations::wire_holds(const OutgoingQueue& queue, const PeerMonitor& peers) {
    bool held = false;
    pool_.for_each([&](const Operation& operation) {
        held = held || (operation.held_by_wire && operation.queue == queue.number &&
                        peers.failure(operation.lane_id.pe) == Code::ok);
    });
    return held;
}

bool OutgoingOperations::wire_holds(int pe) {
    bool held = false;
    pool_.for_each(
        [&](const Operation& operation) { held = held || (operation.held_by_wire && operation.lane_id.pe == pe); });
    return held;
}

std::vector<LaneId> OutgoingOperations::abandon(const OutgoingQueue& queue) {
    std::vector<LaneId> held;
    pool_.for_each([&](Operation& operation) {
        if (operation.flow == nullptr || operation.flow->queue != &queue) return;
        if (operation.held_by_wire) held.push_back(operation.flow->lane_id);
        operation.flow = nullptr;
        operation.deferred_signal.reset();
        if (!operation.held_by_wire) pool_.release(operation);
    });
    return held;
}

bool OutgoingOperations::has_deferred_signal() const {
    for (const auto& [number, queue] : queues_)
        for (const Flow* flow : queue->active)
            if (flow->signals > 0) return true;
    return false;
}

void OutgoingOperations::report_pending_event(OutgoingQueue& queue, Code code) {
    events_.report(code, queue.pending_event->first, queue.pending_event->second);
    queue.pending_event.reset();
}

}  // namespace npushmem::network
