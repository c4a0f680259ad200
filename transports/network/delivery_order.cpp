#include "transports/network/delivery_order.hpp"

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

// An in-order wire delivers writes and requests in the order of posting, but a later write may arrive before the
// handler has processed an earlier request. A signal that waits for its data's completion is not posted yet. Striped
// transfers are overtaken.
bool DeliveryOrder::may_post_after_fence(Flow& flow, PostKind kind) {
    const bool request = kind == PostKind::request;
    const bool overtaken = !ordered() || flow.signals > 0 || !wire_->in_order(flow.lane_id);
    if (!overtaken && request) return true;
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

}  // namespace npushmem::network
