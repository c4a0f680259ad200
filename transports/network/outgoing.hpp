// SPDX-License-Identifier: BSD-3-Clause
// Queues and operations in flight of a PE, and the state per queue and peer for which fence and quiet wait. The
// transport's lock guards everything here.
#pragma once

#include <cstdint>
#include <deque>
#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <unordered_map>
#include <utility>
#include <vector>

#include "transports/network/message.hpp"
#include "transports/network/peer_lanes.hpp"
#include "transports/network/peer_monitor.hpp"
#include "transports/network/wire.hpp"

namespace npushmem::network {

struct OutgoingQueue;

// The operations of one queue to one peer.
struct Flow {
    OutgoingQueue* queue;
    LaneId lane_id;
    Code lost = Code::ok;       // not ok: its lane is lost, but not the peer
    std::uint32_t writes = 0;   // not completed by the wire, or their signal is not sent
    std::uint32_t signals = 0;  // of them, those whose signal is not sent
    std::uint32_t fetches = 0;  // unanswered requests
    std::uint32_t flushes = 0;  // in flight
    bool undelivered = false;   // writes since the last flush are complete here, but may not be at the target
    bool unhandled = false;     // requests without answer were sent since the last flush message
    bool fenced = false;        // after the operations in flight were posted
    bool active = false;        // in the queue's list of active flows

    // The peer or the lane is lost. Records a failure, and returns true, when the delivery of an earlier operation is
    // unknown.
    bool forget_delivery(Code code);
};

// One posted operation. Its address is stable until it returns to the pool.
struct Operation : WireContext {
    enum class Kind : std::uint8_t { write, read, fetch, flush };
    std::uint64_t ticket = 0;  // 0: unused
    std::uint32_t index = 0;
    Kind kind = Kind::write;
    std::uint32_t queue = 0;    // number of the queue; remains when `flow` is null
    LaneId lane_id;             // remains when `flow` is null
    bool held_by_wire = false;  // the wire will report its completion
    bool has_token = false;     // the caller has its ticket as a token
    bool flushing = false;      // a write whose signal waits for the wire's flush
    Flow* flow = nullptr;       // null: no caller waits for it
    void* result = nullptr;     // destination of a fetch by message
    std::uint8_t width = 0;
    std::optional<AtomicRequest> deferred_signal;  // sent once the write is delivered

    // The count of its flow that includes it while it is in flight; null: none.
    [[nodiscard]] std::uint32_t* counter() const {
        switch (kind) {
            case Kind::write: return &flow->writes;
            case Kind::fetch: return &flow->fetches;
            case Kind::flush: return &flow->flushes;
            case Kind::read: break;
        }
        return nullptr;
    }
};

struct OutgoingQueue {
    std::uint32_t number = 0;
    std::unordered_map<int, std::unique_ptr<Flow>> flows;
    Flow* last = nullptr;                                  // the last used flow
    std::vector<Flow*> active;                             // flows that have or had operations in flight
    std::uint64_t outstanding = 0;                         // operations in flight
    std::vector<std::pair<std::uint64_t, Code>> failures;  // by ticket or 0; reported once
    // The event (peer, text) of a failure. It is reported with the code, because it does not concern other queues.
    std::optional<std::pair<int, std::string>> pending_event;

    // Calls `acquire_lane` once per peer.
    template <class AcquireLane>
    Flow& flow(int pe, AcquireLane&& acquire_lane) {
        if (last != nullptr && last->lane_id.pe == pe) [[likely]]
            return *last;
        auto& found = flows[pe];
        if (!found) {
            found = std::make_unique<Flow>();
            found->queue = this;
            found->lane_id = {pe, acquire_lane()};
        }
        last = found.get();
        return *last;
    }
    void mark_active(Flow& flow) {
        if (std::exchange(flow.active, true)) return;
        active.push_back(&flow);
    }
    // Removes and returns the failure of this operation; ok when there is none.
    Code take_failure(std::uint64_t ticket) {
        for (auto at = failures.begin(); at != failures.end(); ++at) {
            if (at->first != ticket) continue;
            const Code code = at->second;
            failures.erase(at);
            return code;
        }
        return Code::ok;
    }
    Code take_failures() {
        if (failures.empty()) return Code::ok;
        const Code first = failures.front().second;
        failures.clear();
        return first;
    }
};

class OperationPool {
public:
    // An operation that is not in flight yet.
    Operation& take(Operation::Kind kind, const Flow& flow) {
        if (free_.empty()) {
            operations_.emplace_back();
            operations_.back().index = static_cast<std::uint32_t>(operations_.size() - 1);
            free_.push_back(&operations_.back());
        }
        Operation& operation = *free_.back();
        free_.pop_back();
        operation.ticket = (++generation_ << 32) | (operation.index + 1U);
        operation.kind = kind;
        operation.held_by_wire = operation.has_token = operation.flushing = false;
        operation.flow = nullptr;
        operation.queue = flow.queue->number;
        operation.lane_id = flow.lane_id;
        operation.result = nullptr;
        operation.deferred_signal.reset();
        return operation;
    }
    void release(Operation& operation) {
        operation.ticket = 0;
        operation.flow = nullptr;
        free_.push_back(&operation);
    }
    // Null when the operation has finished.
    [[nodiscard]] Operation* find(std::uint64_t ticket) {
        const std::uint64_t index = (ticket & 0xffffffffU) - 1;
        if (index >= operations_.size() || operations_[index].ticket != ticket) return nullptr;
        return &operations_[index];
    }
    template <class Visit>
    void for_each(Visit&& visit) {
        for (Operation& operation : operations_)
            if (operation.ticket != 0) visit(operation);
    }

private:
    std::deque<Operation> operations_;
    std::vector<Operation*> free_;
    std::uint64_t generation_ = 0;
};

// The queues and their operations in flight. Keeps the counts of each flow and queue equal to the operations in flight,
// and the failures until they are reported to the caller.
class OutgoingOperations {
public:
    explicit OutgoingOperations(EventQueue& events) : events_(events) {}

    std::uint64_t create_queue();
    // Null when the number is unknown.
    [[nodiscard]] OutgoingQueue* find_queue(std::uint64_t number) {
        const auto found = queues_.find(number);
        return found == queues_.end() ? nullptr : found->second.get();
    }
    void erase_queue(std::uint64_t number) { queues_.erase(number); }

    // The operation is not in flight yet. Either post() or drop() it. A caller whose sending may lose the lane, and
    // thereby fail all operations in flight there, calls post() after sending.
    Operation& take(Operation::Kind kind, const Flow& flow) { return pool_.take(kind, flow); }
    // The wire has not accepted the operation.
    void drop(Operation& operation) {
        if (operation.flow != nullptr) uncount(operation);
        pool_.release(operation);
    }
    // Null when the operation has finished.
    [[nodiscard]] Operation* find(std::uint64_t ticket) { return pool_.find(ticket); }

    // Counts the operation as in flight.
    void post(Operation& operation, Flow& flow) {
        operation.flow = &flow;
        ++flow.queue->outstanding;
        if (operation.deferred_signal) ++flow.signals;
        if (std::uint32_t* const counter = operation.counter(); counter != nullptr) ++*counter;
    }
    // Records a failure, and returns the operation to the pool.
    void finish(Operation& operation, Code code) {
        if (operation.flow != nullptr) end(operation, code);
        pool_.release(operation);
    }

    // Fails these operations in flight once. Returns their number.
    int fail(const std::function<bool(const Operation&)>& lost, Code code);
    // Every queue's next quiet reports the writes and requests of unknown delivery to this peer. Returns the number of
    // queues that have some.
    int forget_peer(int pe, Code code);
    // Queues on this lane can no longer reach the peer, which their next call reports. Returns them.
    std::vector<OutgoingQueue*> lose_lane(LaneId lane_id, Code code);
    // True when the wire may still use memory of the queue's caller. Also considers operations on lost lanes. The wire
    // may never report operations to a lost peer.
    [[nodiscard]] bool wire_holds(const OutgoingQueue& queue, const PeerMonitor& peers);
    // True when the wire may still use memory of callers for operations to this peer.
    [[nodiscard]] bool wire_holds(int pe);
    // Nobody waits for the queue's operations any more. Returns the lanes on which the wire still holds some. The pool
    // takes these operations back when the wire reports them.
    std::vector<LaneId> abandon(const OutgoingQueue& queue);
    // True when a signal waits for the delivery of its data.
    [[nodiscard]] bool has_deferred_signal() const;

    // Returns `code` to a caller on this queue. For a failure, also reports its pending event.
    Code report_to_caller(OutgoingQueue& queue, Code code) {
        if (code != Code::ok && code != Code::again && queue.pending_event) report_pending_event(queue, code);
        return code;
    }

private:
    static void uncount(const Operation& operation) {
        --operation.flow->queue->outstanding;
        if (operation.deferred_signal) --operation.flow->signals;
        if (std::uint32_t* const counter = operation.counter(); counter != nullptr) --*counter;
    }
    static void end(const Operation& operation, Code code) {
        uncount(operation);
        if (code != Code::ok)
            operation.flow->queue->failures.emplace_back(operation.has_token ? operation.ticket : 0, code);
    }
    void report_pending_event(OutgoingQueue& queue, Code code);

    EventQueue& events_;
    std::map<std::uint64_t, std::unique_ptr<OutgoingQueue>> queues_;
    std::uint64_t last_queue_ = 0;
    OperationPool pool_;
};

// Fences and quiet of a network transport.

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
