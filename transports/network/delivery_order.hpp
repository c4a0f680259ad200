// Fences and quiet of a network transport.
#pragma once

#include <cstdint>
#include <memory>

#include "transports/network/outgoing.hpp"
#include "transports/network/peer_lanes.hpp"
#include "transports/network/wire.hpp"

namespace npushmem::network {

// Decides when an operation may be posted without overtaking a fence, and when all operations of a queue are delivered.
// Starts the flushes that it needs for this. A fence is free when the wire keeps the order. Otherwise the next
// operation to the same peer waits until earlier ones are delivered. The transport's lock guards it.
class DeliveryOrder {
public:
    enum class PostKind : std::uint8_t { transfer, request };

    DeliveryOrder(int my_pe, const std::unique_ptr<Wire>& wire, PeerLanes& lanes, OutgoingOperations& operations)
        : my_pe_(my_pe), wire_(wire), lanes_(lanes), operations_(operations) {}

    // True when the operation may be posted without overtaking a fence. Otherwise starts the flush that it needs.
    bool may_post(Flow& flow, PostKind kind) { return !flow.fenced || may_post_after_fence(flow, kind); }
    void fence(const OutgoingQueue& queue);
    // True when all operations are complete. Otherwise starts the flush that they need.
    bool poll_quiet(OutgoingQueue& queue);

    // True when operations take effect in order.
    [[nodiscard]] bool ordered() const {
        const Delivery delivery = wire_->traits().delivery;
        return delivery == Delivery::in_order || delivery == Delivery::in_order_on_completion;
    }
    // True when a completed write is also delivered.
    [[nodiscard]] bool completion_means_delivery() const {
        const Delivery delivery = wire_->traits().delivery;
        return delivery == Delivery::on_completion || delivery == Delivery::in_order_on_completion;
    }

private:
    bool may_post_after_fence(Flow& flow, PostKind kind);
    // True when all operations of these kinds are delivered. Otherwise starts the flush that they need.
    bool poll_delivery(Flow& flow, bool writes, bool requests);
    void start_message_flush(Flow& flow);
    void start_wire_flush(Flow& flow);

    int my_pe_;
    const std::unique_ptr<Wire>& wire_;
    PeerLanes& lanes_;
    OutgoingOperations& operations_;
};

}  // namespace npushmem::network
