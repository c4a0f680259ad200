// What a PE has under way: operations by ticket, and per queue and peer what a fence or quiet has still to wait for.
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

// From one queue to one peer.
struct Flow {
    OutgoingQueue* queue;
    LaneId lane_id;
    Code lost = Code::ok;       // its lane is, and the peer is not
    std::uint32_t writes = 0;   // that the wire has not completed, or whose signal has not been sent
    std::uint32_t signals = 0;  // writes among them whose signal has not been sent
    std::uint32_t fetches = 0;  // requests that have not been answered
    std::uint32_t flushes = 0;  // under way
    bool undelivered = false;   // writes since the last flush: complete here, perhaps not there
    bool unhandled = false;     // requests without an answer since the last flush message
    bool fenced = false;        // since what is under way was posted
    bool active = false;        // in the queue's list
};

// One posted operation; stays where it is until the pool has it back.
struct Operation : WireContext {
    enum class Kind : std::uint8_t { write, read, fetch, flush };
    std::uint64_t ticket = 0;  // 0: not in use
    std::uint32_t index = 0;
    Kind kind = Kind::write;
    std::uint32_t queue = 0;    // its number, which stays when the flow is forgotten
    LaneId lane_id;             // likewise
    bool held_by_wire = false;  // the wire will tell of it
    bool has_token = false;     // its ticket was given out as a token
    bool flushing = false;      // a write that waits for the wire's flush before its signal
    Flow* flow = nullptr;       // null: nobody waits for it any more
    void* result = nullptr;     // of a fetch by message
    std::uint8_t width = 0;
    std::optional<AtomicRequest> deferred_signal;  // a signal to be sent once the write is delivered
};

struct OutgoingQueue {
    std::uint32_t number = 0;
    std::unordered_map<int, std::unique_ptr<Flow>> flows;
    Flow* last = nullptr;                                  // the flow that was used last
    std::vector<Flow*> active;                             // with something under way, or that had
    std::uint64_t outstanding = 0;                         // operations
    std::vector<std::pair<std::uint64_t, Code>> failures;  // ticket or 0; told once
    // What to say of a failure, and of which peer, to who hears of it by a code: it is nothing to other queues.
    std::optional<std::pair<int, std::string>> pending_event;

    // `acquire_lane` is called once per peer.
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
    // The failure of this operation; ok when there is none (any more).
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
    // `flow` is counted up by the caller; one that may fail before it is under way has `flow` null until then.
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
    // Null when the operation is over.
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
