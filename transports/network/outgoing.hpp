// Operations in flight of a PE, by ticket, and the state per queue and peer for which fence and quiet wait.
#pragma once

#include <cstdint>
#include <deque>
#include <memory>
#include <optional>
#include <string>
#include <unordered_map>
#include <utility>
#include <vector>

#include "transports/network/message.hpp"
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
    // The caller counts the operation in `flow`. Set `Operation::flow` to null while posting may fail.
    Operation& take(Operation::Kind kind, Flow& flow) {
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
        operation.flow = &flow;
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

}  // namespace npushmem::network
